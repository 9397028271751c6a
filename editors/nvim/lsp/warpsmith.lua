---@brief
---
--- `warpsmith`, a language server for Triton kernels: findings with fixes, completion, hover, inlay hints, and a search for a
--- faster version of a kernel on your GPU.
---
--- ```sh
--- cargo install warpsmith
--- ```
---
--- `:checkhealth warpsmith` needs the plugin that comes with the server. Without it this file is enough for all but the
--- commands and the diff of an offer.

local ok, client = pcall(require, "warpsmith.client")
if ok then
  return client.config()
end

---@type vim.lsp.Config
return {
  cmd = { "warpsmith", "serve" },
  filetypes = { "python" },
  root_markers = { "warpsmith.toml", "pyproject.toml", ".git" },
  settings = { warpsmith = vim.empty_dict() },
}
