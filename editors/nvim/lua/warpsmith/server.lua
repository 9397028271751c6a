--- Where the server's program is, and starting it.
local M = {}

local is_windows = vim.fn.has("win32") == 1
local program = is_windows and "warpsmith.exe" or "warpsmith"
local programs = is_windows and "Scripts" or "bin"

--- For which folder a server was wanted last: Neovim 0.11 does not tell a function what it starts a server for.
local latest_root
--- What was started for which root: the program, and where it is from.
local started = {}
--- What Neovim 0.10 was told by `setup`.
local of_setup

--- How the client is configured, with all that you have added.
function M.config()
  if vim.lsp.config then
    return vim.lsp.config.warpsmith or require("warpsmith.client").config()
  end
  return of_setup or require("warpsmith.client").config()
end

--- Whether a server is started for new buffers.
function M.is_enabled()
  if vim.lsp.is_enabled then
    return vim.lsp.is_enabled("warpsmith")
  elseif vim.lsp.enable then
    return vim.lsp._enabled_configs.warpsmith ~= nil
  end
  return of_setup ~= nil
end

--- The root of a buffer's project.
function M.root_of(bufnr)
  local markers = M.config().root_markers
  return markers and vim.fs.root(bufnr, markers) or nil
end

--- The folders of programs where a server is looked for, and what they are called.
local function environments(root, is_trusted)
  local found = { { vim.env.VIRTUAL_ENV, "VIRTUAL_ENV" } }
  -- What a folder brings along is run only where you trust it.
  if root and is_trusted then
    table.insert(found, { vim.fs.joinpath(root, ".venv"), ".venv" })
    table.insert(found, { vim.fs.joinpath(root, "venv"), "venv" })
  end
  table.insert(found, { vim.env.CONDA_PREFIX, "CONDA_PREFIX" })
  return found
end

--- The program for a project and where it is from; nothing, and why, where there is none.
local function find(config, root)
  local is_trusted = (config.init_options or {}).workspaceTrusted ~= false
  for _, environment in ipairs(environments(root, is_trusted)) do
    local folder, from = environment[1], environment[2]
    local file = folder and folder ~= "" and vim.fs.joinpath(folder, programs, program)
    if file and vim.fn.executable(file) == 1 then
      return { file, "serve" }, from
    end
  end
  local file = vim.fn.exepath("warpsmith")
  if file ~= "" then
    return { file, "serve" }, "PATH"
  end
  return nil, "there is no `warpsmith` in the Python environment or on the PATH: install it there, or set `cmd`"
end

--- What starts the server of a project, and where that is from; nothing, and why, where there is none.
function M.command(root)
  local config = M.config()
  local cmd = config.cmd
  if type(cmd) == "table" then
    if vim.fn.executable(cmd[1]) == 1 then
      return cmd, "cmd"
    end
    return nil, ("`%s`, which `cmd` names, cannot be run"):format(cmd[1])
  elseif type(cmd) == "function" and cmd ~= M.launch then
    return nil, "`cmd` is a function of your own"
  end
  return find(config, root)
end

--- The default of `cmd`.
function M.launch(dispatchers, config)
  config = config or vim.tbl_extend("force", M.config(), { root_dir = latest_root })
  local cmd, from = find(config, config.root_dir)
  if not cmd then
    error("Warpsmith: " .. from, 0)
  end
  started[config.root_dir or ""] = { cmd[1], from }
  return vim.lsp.rpc.start(cmd, dispatchers, {
    cwd = config.cmd_cwd,
    env = config.cmd_env,
    detached = config.detached,
  })
end

--- The program that a client runs, and where that is from.
function M.program_of(client)
  local config = client.config
  if type(config.cmd) == "table" then
    return config.cmd[1], "cmd"
  elseif config.cmd == M.launch then
    return unpack(started[config.root_dir or ""] or { "?", "?" })
  end
  return "a function of your own", "cmd"
end

--- The default of `root_dir`: without a program nothing is started, and it is said once.
function M.root_dir(bufnr, start)
  local root = M.root_of(bufnr)
  local config = M.config()
  local has_own = type(config.cmd) == "function" and config.cmd ~= M.launch
  local cmd, why = M.command(root)
  if cmd or has_own then
    latest_root = root
    start(root)
  else
    vim.notify_once("Warpsmith: " .. why, vim.log.levels.WARN, { title = "Warpsmith" })
  end
end

--- Attaches a buffer to the server of its project, which is started if need be.
function M.start(bufnr)
  local config = vim.deepcopy(M.config())
  config.name = "warpsmith"
  local function start(root)
    config.root_dir = root
    vim.lsp.start(config, { bufnr = bufnr, reuse_client = config.reuse_client })
  end
  if type(config.root_dir) == "function" then
    config.root_dir(bufnr, start)
  else
    start(config.root_dir or M.root_of(bufnr))
  end
end

--- Whether the server is for a buffer.
function M.is_for(bufnr)
  local is_loaded = vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buftype == ""
  return is_loaded and vim.tbl_contains(M.config().filetypes or {}, vim.bo[bufnr].filetype)
end

--- Starts the server for all buffers that it is for.
function M.start_all()
  vim.iter(vim.api.nvim_list_bufs()):filter(M.is_for):each(M.start)
end

--- What `vim.lsp.enable` is for newer ones.
function M.enable_in_0_10(config)
  of_setup = vim.tbl_deep_extend("force", require("warpsmith.client").config(), config)
  vim.api.nvim_create_autocmd("FileType", {
    group = vim.api.nvim_create_augroup("warpsmith.enable", { clear = true }),
    pattern = of_setup.filetypes,
    callback = function(event)
      if M.is_for(event.buf) then
        M.start(event.buf)
      end
    end,
  })
  if vim.v.vim_did_enter == 1 then
    M.start_all()
  end
end

--- Stops all servers, those that do not listen by force, and starts them again.
function M.restart()
  local clients = vim.lsp.get_clients({ name = "warpsmith" })
  local stop = require("warpsmith.client").stop
  vim.iter(clients):each(stop)
  local function is_there(client)
    return vim.lsp.get_client_by_id(client.id) ~= nil
  end
  local began = vim.uv.now()
  local function wait()
    local left = vim.tbl_filter(is_there, clients)
    if #left == 0 then
      return M.start_all()
    end
    if vim.uv.now() - began > 3000 then
      vim.iter(left):each(function(client)
        stop(client, true)
      end)
    end
    vim.defer_fn(wait, 50)
  end
  wait()
end

--- Why no server is attached to a buffer.
function M.why_not(bufnr)
  local config = M.config()
  if not vim.tbl_contains(config.filetypes or {}, vim.bo[bufnr].filetype) then
    return "this is no Python file"
  elseif not M.is_enabled() then
    local how = vim.lsp.enable and 'vim.lsp.enable("warpsmith")' or 'require("warpsmith").setup()'
    return "it is not enabled: call `" .. how .. "`"
  end
  local cmd, why = M.command(M.root_of(bufnr))
  return cmd and "its server does not run: `:Warpsmith restart` starts it" or why
end

return M
