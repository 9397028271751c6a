--- What the server offers at the cursor, for the commands.
local M = {}

local client_module = require("warpsmith.client")

local nothing = "there is nothing to optimize here: put the cursor into a kernel, or a function that launches some"

--- Asks for the actions of a kind at the cursor, those that cannot be taken, too.
local function ask(client, kind, range, handler)
  local params = {
    textDocument = vim.lsp.util.make_text_document_params(),
    range = range or vim.lsp.util.make_range_params(0, client.offset_encoding).range,
    context = { diagnostics = {}, only = { kind }, triggerKind = 1 },
  }
  client_module.request(client, "textDocument/codeAction", params, function(err, actions)
    if err then
      return client_module.warn(err.message)
    end
    handler(actions or {})
  end)
end

local function argument(action)
  return ((action.command or {}).arguments or {})[1] or {}
end

--- Which kind of search an action starts.
local function search_of(action)
  if (action.command or {}).command ~= "warpsmith.optimize" then
    return nil
  end
  local of = argument(action)
  return of.ask and "ask" or of.measure and "measure" or of.run and "resume" or "plain"
end

--- Why nothing can be taken of what is offered.
local function why_not(actions, none)
  for _, action in ipairs(actions) do
    if action.disabled then
      return action.disabled.reason
    elseif (action.command or {}).command == "warpsmith.cancel" then
      return "that is being optimized already: `:Warpsmith stop` stops it"
    end
  end
  return none
end

--- Takes the first action of optimizing that fits, with more to say in its argument; says why where there is none.
local function take(fits, more, none)
  local client = client_module.here()
  if not client then
    return
  end
  ask(client, "refactor.rewrite", nil, function(actions)
    local action = vim.iter(actions):find(fits)
    if action then
      local with = vim.tbl_extend("force", argument(action), more)
      client_module.execute(client, action.command.command, with)
    else
      client_module.warn(why_not(actions, none))
    end
  end)
end

local function search(wanted, none)
  return function(more)
    take(function(action)
      return search_of(action) == wanted
    end, more or {}, none)
  end
end

--- Searches for a faster version of what is at the cursor. `more` may hold `budget` (seconds), `rewrites` and `ask`.
M.optimize = search("plain", nothing)
--- Goes on with the last search, where it was stopped.
M.resume = search("resume", "no search of this kernel was stopped")
--- Measures what is at the cursor against what it was before the last search.
M.measure = search("measure", "no search of this kernel has ended")

--- Opens the report of the last search.
function M.report()
  take(function(action)
    return (action.command or {}).command == "warpsmith.report"
  end, {}, "no search of this kernel has ended")
end

--- Why what is at the cursor cannot be optimized, for the handler; nothing where it can.
function M.reason(client, handler)
  ask(client, "refactor.rewrite", nil, function(actions)
    local is_ready = vim.iter(actions):any(search_of)
    handler(not is_ready and why_not(actions, nil) or nil)
  end)
end

local function at_cursor(client, more)
  local at = vim.lsp.util.make_position_params(0, client.offset_encoding)
  return vim.tbl_extend("error", more, { uri = at.textDocument.uri, position = at.position })
end

--- Opens what the compiler makes of the kernel at the cursor.
function M.inspect(stage)
  local client = client_module.here()
  if client then
    client_module.execute(client, "warpsmith.inspect", at_cursor(client, { stage = stage }))
  end
end

--- Runs the file, or with `again` the command that recorded calls of it last, and keeps the calls that launch kernels.
function M.record(again)
  local client = client_module.here()
  if client then
    local uri = vim.uri_from_bufnr(0)
    client_module.execute(client, "warpsmith.record", { uri = uri, again = again })
  end
end

--- Says what the kernel at the cursor takes of the GPU.
function M.resources()
  local client = client_module.here()
  if not client then
    return
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local params = { textDocument = vim.lsp.util.make_text_document_params() }
  client_module.request(client, "textDocument/documentSymbol", params, function(err, symbols)
    local kernel = vim.iter(symbols or {}):find(function(symbol)
      return symbol.range and symbol.range.start.line <= line and line <= symbol.range["end"].line
    end)
    if err or not kernel then
      return client_module.warn(err and err.message or "there is no kernel here")
    end
    client_module.execute(client, "warpsmith.resources", { uri = params.textDocument.uri, kernel = kernel.name })
  end)
end

--- Does something about the learned rule that has a finding on this line: "reproducer", "dispute" or "mute".
function M.memory(what)
  local client = client_module.here()
  if not client then
    return
  end
  local row = vim.api.nvim_win_get_cursor(0)[1] - 1
  local range = { start = { line = row, character = 0 }, ["end"] = { line = row + 1, character = 0 } }
  ask(client, "quickfix", range, function(actions)
    local action = vim.iter(actions):find(function(action)
      return (action.command or {}).command == "warpsmith.memory." .. what
    end)
    if not action then
      return client_module.warn("no learned rule has a finding on this line")
    end
    client_module.execute(client, action.command.command, argument(action))
  end)
end

return M
