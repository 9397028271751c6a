--- How Neovim speaks to the server.
local M = {}

local is_new = vim.fn.has("nvim-0.11") == 1

--- The versions that servers say they have, by client.
local versions = {}
--- Clients that are stopped on purpose.
local expected = {}

--- Says something to the user.
function M.say(text, level)
  vim.notify("Warpsmith: " .. text, level or vim.log.levels.INFO, { title = "Warpsmith" })
end

function M.warn(text)
  M.say(text, vim.log.levels.WARN)
end

--- Calls a method of a client: they became methods in Neovim 0.11.
local function call(client, method, ...)
  if is_new then
    return client[method](client, ...)
  end
  return client[method](...)
end

function M.request(client, method, params, handler)
  if not call(client, "request", method, params, handler, vim.api.nvim_get_current_buf()) then
    M.warn("the server has ended: `:Warpsmith restart` starts it again")
  end
end

function M.request_sync(client, method, params, timeout)
  return call(client, "request_sync", method, params, timeout, vim.api.nvim_get_current_buf())
end

--- Has the server run a command. Why it refuses is said, since the user has asked.
function M.execute(client, command, argument)
  M.request(client, "workspace/executeCommand", { command = command, arguments = { argument } }, function(err)
    if err then
      M.warn(err.message)
    end
  end)
end

--- The client of the current buffer. Says why where there is none.
function M.here()
  local client = vim.lsp.get_clients({ bufnr = 0, name = "warpsmith" })[1]
  if not client then
    M.warn(require("warpsmith.server").why_not(0))
  end
  return client
end

--- Stops a client, by force if it does not listen. No word is said about that.
function M.stop(client, by_force)
  expected[client.id] = true
  call(client, "stop", by_force or false)
end

--- The version that a client's server says it has.
function M.version(client)
  return versions[client.id]
end

local function on_init(client, result)
  versions[client.id] = (result.serverInfo or {}).version
  local options = require("warpsmith.options").get()
  if options.inlay_hints == false then
    client.server_capabilities.inlayHintProvider = nil
  end
  if options.code_lens == false then
    client.server_capabilities.codeLensProvider = nil
  end
end

local function on_exit(code, signal, id)
  vim.schedule(function()
    require("warpsmith.jobs").forget(id)
    require("warpsmith.offers").forget(id)
    local is_expected = expected[id] or (code == 0 and (signal == 0 or signal == 15))
    versions[id], expected[id] = nil, nil
    if not is_expected then
      local how = signal ~= 0 and "signal " .. signal or "exit status " .. code
      M.warn(("the server has ended (%s). `:Warpsmith restart` starts it again, `:Warpsmith log` may say why"):format(how))
    end
  end)
end

--- What is said with a message that is no question.
local function show_message(_, params)
  local levels = { vim.log.levels.ERROR, vim.log.levels.WARN }
  M.say(params.message, levels[params.type] or vim.log.levels.INFO)
  return vim.NIL
end

--- What this plugin can do beside Neovim.
local function capabilities()
  local own = {
    textDocument = { codeAction = { disabledSupport = true } },
    workspace = {
      workspaceEdit = { documentChanges = true, changeAnnotationSupport = { groupsOnLabel = true } },
      codeLens = { refreshSupport = true },
    },
  }
  if is_new then
    return own -- what is said for all servers is laid below it
  end
  return vim.tbl_deep_extend("force", vim.lsp.protocol.make_client_capabilities(), own)
end

--- The configuration of the client, for `vim.lsp.config`.
function M.config()
  local server = require("warpsmith.server")
  local handlers = {
    ["workspace/applyEdit"] = function(...)
      return require("warpsmith.offers").apply(...)
    end,
    ["window/showDocument"] = function(...)
      return require("warpsmith.documents").show(...)
    end,
    ["window/showMessage"] = show_message,
  }
  if not vim.lsp.codelens.enable then
    handlers["workspace/codeLens/refresh"] = function(...)
      return require("warpsmith.features").refresh_lenses(...)
    end
  end
  return {
    cmd = server.launch,
    filetypes = { "python" },
    root_markers = { "warpsmith.toml", "pyproject.toml", ".git" },
    root_dir = server.root_dir,
    settings = { warpsmith = vim.empty_dict() },
    capabilities = capabilities(),
    handlers = handlers,
    on_init = on_init,
    on_exit = on_exit,
  }
end

return M
