--- What the scripts beside this one share.
local M = {}

--- All that was said, in order.
M.told = {}

function M.say(...)
  io.stdout:write(string.format(...) .. "\n")
  io.stdout:flush()
end

function M.fail(text)
  io.stderr:write(("FAIL %s\nbuffer: %s\ntold: %s\n"):format(text, vim.api.nvim_buf_get_name(0), vim.inspect(M.told)))
  vim.cmd("cquit 1")
end

--- Waits until something is there, for a minute unless told otherwise; ends with status 1 and a reason when it does not come.
function M.wait_for(what, condition, seconds)
  if not vim.wait((seconds or 60) * 1000, condition, 10) then
    M.fail(("no %s; diagnostics: %s"):format(what, vim.inspect(vim.diagnostic.get(0))))
  end
end

--- Loads the plugin as a plugin manager would.
function M.load(plugin)
  vim.opt.runtimepath:prepend(plugin)
  vim.cmd("filetype plugin on")
  vim.cmd("syntax on")
  vim.cmd("runtime! plugin/warpsmith.lua")
end

--- Keeps what is said instead of showing it.
function M.listen()
  vim.notify = function(message)
    M.told[#M.told + 1] = message
  end
end

--- What was said with these words, if anything was.
function M.heard(words)
  return vim.iter(M.told):find(function(message)
    return message:find(words, 1, true) ~= nil
  end)
end

function M.client()
  return vim.lsp.get_clients({ bufnr = 0, name = "warpsmith" })[1]
end

--- Opens a file and waits until the server is there.
function M.open(file)
  vim.cmd.edit(file)
  M.wait_for("client", function()
    return M.client() and M.client().initialized
  end)
end

--- Ends all servers.
function M.stop()
  vim.iter(vim.lsp.get_clients({ name = "warpsmith" })):each(require("warpsmith.client").stop)
  M.wait_for("end of the server", function()
    return #vim.lsp.get_clients({ name = "warpsmith" }) == 0
  end)
end

--- Gives a command until something is so: devices are looked for at the start, and until then it is refused.
function M.ask_until(command, what, condition)
  local asked = 0
  M.wait_for(what, function()
    if vim.uv.now() - asked > 1000 then
      asked = vim.uv.now()
      vim.cmd(command)
    end
    return condition()
  end)
end

--- Puts the cursor to the first place of a pattern.
function M.go_to(pattern)
  vim.api.nvim_win_set_cursor(0, { 1, 0 })
  assert(vim.fn.search(pattern, "cw") > 0, pattern)
end

function M.text(bufnr)
  return table.concat(vim.api.nvim_buf_get_lines(bufnr or 0, 0, -1, true), "\n")
end

function M.done()
  M.say("ok done")
  vim.cmd("qall!")
end

return M
