-- nvim --headless --clean -l record.lua PLUGIN SERVER FILE
-- Opens FILE, which runs itself, and has its calls recorded.
local plugin, server, file = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local wait_for = common.wait_for

common.load(plugin)
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
common.open(file)
-- Devices are looked for at the start: until then it is refused, and once it runs a second time is.
local function ask_until(command, words)
  local asked = 0
  wait_for(words, function()
    if vim.uv.now() - asked > 1000 then
      asked = vim.uv.now()
      vim.cmd(command)
    end
    return is_told(words)()
  end)
end
ask_until("WarpsmithRecord!", "no command is known that recorded calls of this file")
ask_until("WarpsmithRecord", "Recorded ")
for _, message in ipairs(told) do
  if message:find("Recorded ", 1, true) then
    io.stdout:write("ok " .. message .. "\n")
  end
end
io.stdout:write("ok done\n")
vim.cmd("qall!")
