--- What the plugin itself is told, beside how the server is started: by `setup()` or in `vim.g.warpsmith`.
local M = {}

local defaults = {
  --- Shows inlay hints in the buffers of the server. `false` hides those of this server; `nil` leaves it to you.
  inlay_hints = nil,
  --- The same for what stands above kernels.
  code_lens = nil,
  --- In a diff of what a search has found. `false` in place of a key sets none.
  keys = { accept = "A", discard = "q" },
}

--- Those that have no default, too.
local names = { inlay_hints = "boolean", code_lens = "boolean", keys = "table" }

local given = {}

--- Splits what `setup` is given into options of the plugin and the configuration of the client.
function M.take(all)
  given = {}
  local config = {}
  for name, value in pairs(all) do
    if names[name] then
      if type(value) ~= names[name] then
        error(("`%s` is a %s and should be a %s"):format(name, type(value), names[name]), 0)
      end
      given[name] = value
    else
      config[name] = value
    end
  end
  return config
end

--- All options as they are now.
function M.get()
  local global = type(vim.g.warpsmith) == "table" and vim.g.warpsmith or {}
  return vim.tbl_deep_extend("force", defaults, global, given)
end

--- The names of options that nobody knows.
function M.unknown()
  local global = type(vim.g.warpsmith) == "table" and vim.g.warpsmith or {}
  return vim.tbl_filter(function(name)
    return not names[name]
  end, vim.tbl_keys(global))
end

return M
