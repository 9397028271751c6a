--- Inlay hints and lenses, where the options turn them on.
local M = {}

local function refresh(bufnr)
  vim.lsp.codelens.refresh({ bufnr = bufnr })
end

--- Neovim 0.11 and older ask for lenses only when they are told to.
local function keep_lenses_fresh(bufnr)
  vim.api.nvim_create_autocmd({ "BufEnter", "BufWritePost", "InsertLeave" }, {
    group = vim.api.nvim_create_augroup("warpsmith.lenses." .. bufnr, { clear = true }),
    buffer = bufnr,
    callback = function()
      refresh(bufnr)
    end,
  })
  refresh(bufnr)
end

--- A buffer was attached to the server.
function M.attach(bufnr)
  local options = require("warpsmith.options").get()
  if options.inlay_hints then
    vim.lsp.inlay_hint.enable(true, { bufnr = bufnr })
  end
  if options.code_lens and vim.lsp.codelens.enable then
    vim.lsp.codelens.enable(true, { bufnr = bufnr })
  elseif options.code_lens then
    keep_lenses_fresh(bufnr)
  end
end

--- The server knows more about kernels than before.
function M.refresh_lenses(_, _, context)
  if require("warpsmith.options").get().code_lens then
    local client = vim.lsp.get_client_by_id(context.client_id)
    for bufnr in pairs(client and client.attached_buffers or {}) do
      refresh(bufnr)
    end
  end
  return vim.NIL
end

return M
