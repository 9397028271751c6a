--- `:checkhealth warpsmith`: what `warpsmith doctor` says, and how the servers that run are.
local M = {}

--- The program that the configuration or a running server names.
local function program()
  local client = vim.lsp.get_clients({ name = "warpsmith" })[1]
  local config = client and client.config or (vim.lsp.config and vim.lsp.config.warpsmith) or require("warpsmith").config
  return type(config.cmd) == "table" and config.cmd[1] or require("warpsmith").config.cmd[1]
end

local function request_status(client)
  local params = vim.empty_dict()
  if vim.fn.has("nvim-0.11") == 1 then
    return client:request_sync("warpsmith/status", params, 2000)
  end
  return client.request_sync("warpsmith/status", params, 2000)
end

local function promises(name)
  local ran = vim.system({ name, "doctor", "--json" }, { text = true }):wait(120000)
  local ok, found = pcall(vim.json.decode, ran.stdout or "")
  if not ok then
    vim.health.error(name .. " doctor fails: " .. (ran.stderr or ""))
    return
  end
  vim.health.ok(name .. " " .. found.version)
  for _, promise in ipairs(found.promises) do
    local text = promise.name .. ": " .. promise.detail
    if promise.state == "works" then
      vim.health.ok(text)
    elseif promise.state == "missing" then
      vim.health.warn(text, promise.remedies)
    else
      vim.health.info(text)
    end
  end
end

function M.check()
  vim.health.start("warpsmith")
  local name = program()
  if vim.fn.executable(name) == 0 then
    vim.health.error("`" .. name .. "` cannot be run", { "put `warpsmith` on the PATH, or set `cmd`" })
    return
  end
  promises(name)
  vim.health.start("warpsmith: servers that run")
  for _, client in ipairs(vim.lsp.get_clients({ name = "warpsmith" })) do
    local answer = request_status(client)
    local status = answer and answer.result and answer.result.compiler
    if not status then
      vim.health.warn("the server of " .. (client.root_dir or client.config.root_dir or "?") .. " does not answer")
    else
      local function known(value)
        return value ~= nil and value ~= vim.NIL and tostring(value) or nil
      end
      local text = ("compiler: %s, Triton %s, %s"):format(
        status.state,
        known(status.triton) or "unknown",
        known(status.message) or known(status.python) or "no Python"
      )
      if status.state == "unfit" then
        vim.health.warn(text)
      else
        vim.health.ok(text)
      end
      local device = answer.result.device or {}
      vim.health.info("GPU: " .. (known(device.name) or known(device.message) or "still looking"))
    end
  end
end

return M
