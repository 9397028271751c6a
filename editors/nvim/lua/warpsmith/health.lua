--- `:checkhealth warpsmith`
local M = {}

local health = vim.health

local function check_neovim()
  health.start("warpsmith: Neovim")
  local version = tostring(vim.version())
  if vim.fn.has("nvim-0.10") == 0 then
    health.error("Neovim " .. version .. " is too old", { "the plugin needs 0.10 or newer" })
  else
    health.ok("Neovim " .. version)
  end
  for _, name in ipairs(require("warpsmith.options").unknown()) do
    health.warn(("`vim.g.warpsmith` has `%s`, which is no option"):format(name), { "`:help warpsmith-options` lists them" })
  end
  if require("warpsmith.server").is_enabled() then
    health.ok("the server is enabled")
  else
    local how = vim.lsp.enable and 'vim.lsp.enable("warpsmith")' or 'require("warpsmith").setup()'
    health.warn("the server is not enabled", { "`" .. how .. "` in `init.lua` starts it for Python files" })
  end
end

--- The root of the project that is worked on: the report itself has none.
local function root()
  local client = vim.lsp.get_clients({ name = "warpsmith" })[1]
  local other = vim.fn.bufnr("#")
  local of_client = client and (client.root_dir or client.config.root_dir)
  return of_client or other > 0 and require("warpsmith.server").root_of(other) or vim.fn.getcwd()
end

--- What `warpsmith doctor` says, as a table.
local function examine(cmd, folder)
  local words = vim.list_extend(vim.list_slice(cmd, 1, math.max(1, #cmd - 1)), { "doctor", "--json" })
  local ok, ran = pcall(function()
    return vim.system(words, { text = true, cwd = folder }):wait(120000)
  end)
  local is_json, found = pcall(vim.json.decode, ok and ran.stdout or "", { luanil = { object = true, array = true } })
  if is_json and type(found) == "table" then
    return found
  end
  health.error(("`%s` fails: %s"):format(table.concat(words, " "), ok and ran.stderr or ran))
end

local function check_program(folder)
  health.start("warpsmith: the program")
  local cmd, from = require("warpsmith.server").command(folder)
  if not cmd then
    health.error(from, { "`cargo install --path .` in a checkout of Warpsmith installs it", "`:help warpsmith-server`" })
    return nil
  end
  health.ok(("%s (from %s)"):format(cmd[1], from))
  local found = examine(cmd, folder)
  local wanted = require("warpsmith.version")
  if found and found.version == wanted then
    health.ok("version " .. wanted .. ", as the plugin's")
  elseif found then
    local advice = "bring both to the same version: each is tested with its own"
    health.warn(("version %s, and the plugin is of %s"):format(found.version, wanted), { advice })
  end
  return found
end

local function check_facts(found)
  if found.broken_settings then
    health.error("settings: " .. found.broken_settings)
  else
    health.ok("settings: " .. (found.settings or "no file, all is default"))
  end
  local python = found.python
  if not python then
    health.warn("Python: not found", { "name one in the setting `python`, or activate an environment" })
  else
    local text = ("Python: %s (%s)"):format(python.executable, python.source)
    local report = python.exists and health.ok or health.error
    report(text .. (python.exists and "" or ", does not exist"))
    health.info("Triton: " .. (python.triton or "not installed"))
    health.info("torch: " .. (python.torch and "installed" or "not installed"))
  end
  for _, device in ipairs(found.devices) do
    health.ok(("GPU: %s, compute capability %s"):format(device.name, table.concat(device.capability, ".")))
  end
  if found.no_device then
    health.info("GPU: " .. found.no_device)
  end
end

local function check_machine(found)
  health.start("warpsmith: what works here")
  check_facts(found)
  for _, promise in ipairs(found.promises) do
    local text = promise.name .. ": " .. promise.detail
    if promise.state == "works" then
      health.ok(text)
    elseif promise.state == "missing" then
      health.warn(text, promise.remedies)
    else
      health.info(text)
    end
  end
end

local function check_servers()
  health.start("warpsmith: servers that run")
  local clients = vim.lsp.get_clients({ name = "warpsmith" })
  if #clients == 0 then
    health.info("none: one starts with the first Python file")
  end
  for _, client in ipairs(clients) do
    local place = client.root_dir or client.config.root_dir or "files without a project"
    local text, is_fit = require("warpsmith.status").compiler(client)
    if not text then
      health.warn("the server of " .. place .. " does not answer", { "`:Warpsmith restart`" })
    else
      local report = is_fit and health.ok or health.warn
      report(("%s: %s"):format(place, text))
    end
  end
end

function M.check()
  check_neovim()
  local found = check_program(root())
  if found then
    check_machine(found)
  end
  check_servers()
end

return M
