--- Texts that the server opens: what the compiler makes of a kernel, or a change as a diff.
local M = {}

--- The window for such texts in this tab page.
local function window_beside()
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.w[window].warpsmith_beside then
      return window
    end
  end
  local from = vim.api.nvim_get_current_win()
  vim.cmd("rightbelow vertical split")
  local window = vim.api.nvim_get_current_win()
  vim.w[window].warpsmith_beside = true
  vim.api.nvim_set_current_win(from)
  return window
end

--- Opens a file of the server's beside the source, as it is now on the disk.
local function open_beside(file, takes_focus)
  local bufnr = vim.fn.bufadd(file)
  local window = vim.fn.win_findbuf(bufnr)[1] or window_beside()
  local was_loaded = vim.api.nvim_buf_is_loaded(bufnr)
  vim.api.nvim_win_set_buf(window, bufnr)
  vim.api.nvim_win_call(window, function()
    if was_loaded then
      vim.cmd("silent edit!")
    end
    vim.bo.readonly = true
  end)
  -- Nobody is interrupted while typing.
  if takes_focus and vim.api.nvim_get_mode().mode == "n" then
    vim.api.nvim_set_current_win(window)
  end
end

--- The answer to `window/showDocument`.
function M.show(err, params, context)
  if params.external then
    return vim.lsp.handlers["window/showDocument"](err, params, context)
  end
  local ok, why = pcall(open_beside, vim.uri_to_fname(params.uri), params.takeFocus ~= false)
  if not ok then
    require("warpsmith.client").warn(tostring(why))
  end
  return { success = ok }
end

return M
