-- nvim --headless --clean -l record.lua PLUGIN SERVER FILE
-- Opens FILE, which runs itself, and has its calls recorded.
local plugin, server, file = unpack(arg)

local function wait_for(what, condition)
  if not vim.wait(60000, condition, 10) then
    io.stderr:write("FAIL no " .. what .. " in " .. vim.api.nvim_buf_get_name(0) .. "\n")
    vim.cmd("cquit 1")
  end
end

vim.opt.runtimepath:prepend(plugin)
vim.cmd("filetype plugin on")
vim.cmd("runtime! plugin/warpsmith.lua")
local told = {}
vim.notify = function(message)
  told[#told + 1] = message
end
vim.lsp.handlers["window/showMessage"] = function(_, result)
  told[#told + 1] = result.message
end
local function is_told(words)
  return function()
    return vim.iter(told):any(function(message)
      return message:find(words, 1, true)
    end)
  end
end

require("warpsmith").setup({ cmd = { server, "serve" } })
vim.cmd.edit(file)
wait_for("client", function()
  local client = vim.lsp.get_clients({ bufnr = 0, name = "warpsmith" })[1]
  return client and client.initialized
end)
vim.cmd("WarpsmithRecord!")
wait_for("reason", is_told("no command is known that recorded calls of this file"))
-- Devices are looked for at the start: until then it is refused, and once it runs a second time is.
local asked = 0
wait_for("recording", function()
  if vim.uv.now() - asked > 1000 then
    asked = vim.uv.now()
    vim.cmd("WarpsmithRecord")
  end
  return is_told("Recorded ")()
end)
for _, message in ipairs(told) do
  if message:find("Recorded ", 1, true) then
    io.stdout:write("ok " .. message .. "\n")
  end
end
io.stdout:write("ok done\n")
vim.cmd("qall!")
