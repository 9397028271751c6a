--- What the scripts beside this one share.
local M = {}

--- Waits until something is there, for a minute at the most; ends with status 1 and a reason when it does not come.
function M.wait_for(what, condition)
  if not vim.wait(60000, condition, 10) then
    local shown = vim.inspect(vim.diagnostic.get(0))
    io.stderr:write(("FAIL no %s in %s: %s\n"):format(what, vim.api.nvim_buf_get_name(0), shown))
    vim.cmd("cquit 1")
  end
end

--- Loads the plugin as a plugin manager would.
function M.load(plugin)
  vim.opt.runtimepath:prepend(plugin)
  vim.cmd("filetype plugin on")
  vim.cmd("runtime! plugin/warpsmith.lua")
end

--- Opens a file and waits until the server is there.
function M.open(file)
  vim.cmd.edit(file)
  M.wait_for("client", function()
    local client = vim.lsp.get_clients({ bufnr = 0, name = "warpsmith" })[1]
    return client and client.initialized
  end)
end

return M
