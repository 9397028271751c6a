--- Warpsmith, a language server for Triton kernels, in Neovim.
local M = {}

--- What starts the server. `settings.warpsmith` holds the same keys as `warpsmith.toml`.
M.config = {
  cmd = { "warpsmith", "serve" },
  filetypes = { "python" },
  root_markers = { "warpsmith.toml", "pyproject.toml", ".git" },
  settings = { warpsmith = vim.empty_dict() },
}

--- Starts the server for Python files. `opts` are laid over `M.config`.
function M.setup(opts)
  local config = vim.tbl_deep_extend("force", M.config, opts or {})
  if vim.lsp.enable then
    vim.lsp.config("warpsmith", config)
    vim.lsp.enable("warpsmith")
    return
  end
  -- Neovim 0.10
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("warpsmith", { clear = true }),
    pattern = config.filetypes,
    callback = function(event)
      local start = vim.tbl_extend("force", config, {
        name = "warpsmith",
        root_dir = config.root_dir or vim.fs.root(event.buf, config.root_markers) or vim.fn.getcwd(),
      })
      vim.lsp.start(start, { bufnr = event.buf })
    end,
  })
end

--- Offers to optimize the kernel under the cursor, or to stop it; says why where it cannot be done.
function M.optimize()
  vim.lsp.buf.code_action({ context = { only = { "refactor.rewrite" }, diagnostics = {} }, apply = true })
end

--- Sends a command to a server.
local function execute(client, command, argument, handler)
  local params = { command = command, arguments = { argument } }
  if vim.fn.has("nvim-0.11") == 1 then
    client:request("workspace/executeCommand", params, handler)
  else
    client.request("workspace/executeCommand", params, handler)
  end
end

--- What can be shown of a kernel.
M.stages = { "ttir", "ttgir", "llir", "ptx", "sass", "amdgcn" }

--- Sends a command about the cursor to the buffer's server; says so where it refuses.
local function ask(command, options)
  local client = vim.lsp.get_clients({ bufnr = 0, name = "warpsmith" })[1]
  if not client then
    return vim.notify("Warpsmith does not run in this buffer", vim.log.levels.WARN)
  end
  local at = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local argument = vim.tbl_extend("error", options, { uri = at.textDocument.uri, position = at.position })
  execute(client, command, argument, function(err)
    if err then
      vim.notify(err.message, vim.log.levels.ERROR)
    end
  end)
end

--- Opens what the compiler makes of the kernel under the cursor: `stage` is one of `M.stages`.
function M.inspect(stage)
  ask("warpsmith.inspect", { stage = stage or "ttgir" })
end

--- Runs the file, or with `again` the command that recorded calls of it last, and keeps the calls that launch kernels.
function M.record(again)
  ask("warpsmith.record", { again = again or false })
end

--- The searches that run, by their progress token, which is also the job's name.
local jobs = {}

--- Stops all searches.
function M.stop()
  for job, running in pairs(jobs) do
    local client = vim.lsp.get_client_by_id(running.client)
    if client then
      execute(client, "warpsmith.cancel", { job = job }, function() end)
    end
  end
end

--- How far the searches are, for a status line: an empty string when none runs.
function M.status()
  local parts = {}
  for _, running in pairs(jobs) do
    parts[#parts + 1] = running.text
  end
  return table.concat(parts, " | ")
end

--- Keeps track of the searches. Called once, by `plugin/warpsmith.lua`.
function M.watch()
  vim.api.nvim_create_autocmd("LspProgress", {
    group = vim.api.nvim_create_augroup("warpsmith.progress", { clear = true }),
    callback = function(event)
      local token, value = event.data.params.token, event.data.params.value
      if type(token) ~= "string" or not vim.startswith(token, "warpsmith/") then
        return
      end
      if value.kind == "end" then
        jobs[token] = nil
      else
        local title = value.title or (jobs[token] or {}).title or ""
        local text = ("%s %d%% %s"):format(title, value.percentage or 0, value.message or "")
        jobs[token] = { client = event.data.client_id, title = title, text = vim.trim(text) }
      end
      vim.cmd.redrawstatus()
    end,
  })
end

return M
