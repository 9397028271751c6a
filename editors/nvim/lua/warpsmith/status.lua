--- `:Warpsmith status`: how all is, and why what cannot be done cannot.
local M = {}

local client_module = require("warpsmith.client")

local function known(value)
  return value ~= nil and value ~= vim.NIL and tostring(value) or nil
end

--- What a server says of itself; nothing where it does not answer.
local function asked(client)
  local answer = client_module.request_sync(client, "warpsmith/status", vim.empty_dict(), 2000)
  return answer and answer.result
end

--- How a server's compiler is, in words, and whether it can be used; nothing where the server does not answer.
function M.compiler(client, said)
  said = said or asked(client)
  local status = said and said.compiler
  if not status then
    return nil
  end
  local text = ("compiler: %s, Triton %s, %s"):format(
    status.state,
    known(status.triton) or "unknown",
    known(status.message) or known(status.python) or "no Python"
  )
  return text, status.state ~= "unfit"
end

--- What kernels are measured on: a pool, or the GPU of this machine; or why there is none.
local function device(said)
  return "GPU: " .. (known(said.device.name) or known(said.device.message) or "still looking")
end

--- The server of the current buffer, a line each.
local function of_server(client)
  local program, from = require("warpsmith.server").program_of(client)
  local said = asked(client)
  return {
    ("server: %s %s (%s)"):format(program, client_module.version(client) or "?", from),
    said and M.compiler(client, said) or "the server does not answer",
    said and said.device and device(said),
  }
end

local function of_work()
  local lines = {}
  for _, job in ipairs(require("warpsmith.jobs").all()) do
    lines[#lines + 1] = require("warpsmith.jobs").text(job)
  end
  for _, label in ipairs(require("warpsmith.offers").all()) do
    lines[#lines + 1] = "offered: " .. label
  end
  return lines
end

function M.show()
  local client = vim.lsp.get_clients({ bufnr = 0, name = "warpsmith" })[1]
  if not client then
    local why = "no server for this buffer: " .. require("warpsmith.server").why_not(0)
    return client_module.say(table.concat(vim.list_extend({ why }, of_work()), "\n"))
  end
  local lines = vim.list_extend(of_server(client), of_work())
  require("warpsmith.actions").reason(client, function(reason)
    lines[#lines + 1] = reason and "optimizing here: " .. reason or nil
    client_module.say(table.concat(lines, "\n"))
  end)
end

return M
