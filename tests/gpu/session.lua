-- nvim --headless --clean -l session.lua PLUGIN SERVER FILE apply|cancel
-- Looks at the kernel of FILE, and optimizes it as a user of Neovim would, and writes the file. Prints one JSON object a line:
-- {"seen": …}, {"progress": …}, {"asked": …}, {"seconds": …}.
local plugin, server, file, way = unpack(arg)

local function say(value)
  io.stdout:write(vim.json.encode(value) .. "\n")
  io.stdout:flush()
end

local function fail(text)
  io.stderr:write("FAIL " .. text .. "\n")
  vim.cmd("cquit 1")
end

local function wait_for(what, seconds, condition)
  if not vim.wait(seconds * 1000, condition, 10) then
    fail("no " .. what)
  end
end

-- A user who says yes: to recording a workload, and to the diff that is shown.
vim.lsp.handlers["window/showMessageRequest"] = function(_, params)
  say({ asked = params.message })
  return params.actions[1]
end
vim.notify = function(message)
  say({ message = message })
end

local reports, token, ended = 0, nil, false
vim.api.nvim_create_autocmd("LspProgress", {
  callback = function(event)
    local params = event.data.params
    token = params.token
    if params.value.kind == "end" then
      ended = true
    else
      reports = reports + 1
    end
    if reports % 10 == 1 or ended then
      say({ progress = params.value })
    end
  end,
})

vim.opt.runtimepath:prepend(plugin)
vim.cmd("filetype plugin on")
vim.cmd("runtime! plugin/warpsmith.lua")
vim.lsp.config("warpsmith", { cmd = { server, "serve" } })
vim.lsp.enable("warpsmith")
vim.lsp.inlay_hint.enable(true)
vim.lsp.codelens.enable(true)
vim.cmd.edit(file)
local function client()
  return vim.lsp.get_clients({ bufnr = 0, name = "warpsmith" })[1]
end
wait_for("client", 30, function()
  return client() and client().initialized
end)
local before = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n")
vim.fn.search("def .*_kernel(")

-- What is shown of it: a finding, its type where the cursor is, hints, and what it takes of the GPU above it.
wait_for("finding", 30, function()
  return #vim.diagnostic.get(0) > 0
end)
vim.fn.search("_kernel", "", vim.fn.line("."))
vim.lsp.buf.hover()
wait_for("hover", 30, function()
  return #vim.api.nvim_list_wins() == 2
end)
wait_for("hints", 30, function()
  return #vim.lsp.inlay_hint.get({ bufnr = 0 }) > 0
end)
wait_for("lens", 60, function()
  return #vim.lsp.codelens.get({ bufnr = 0 }) > 0
end)
say({ seen = { findings = #vim.diagnostic.get(0), lenses = #vim.lsp.codelens.get({ bufnr = 0 }) } })

-- Devices are looked for in the background: the action is offered a moment after the start.
local function optimize_action()
  local params = vim.lsp.util.make_range_params(0, client().offset_encoding)
  params.context = { diagnostics = {}, only = { "refactor.rewrite" } }
  local answer = vim.lsp.buf_request_sync(0, "textDocument/codeAction", params, 10000)
  for _, action in ipairs(answer and answer[client().id] and answer[client().id].result or {}) do
    if action.title == "Optimize this kernel" and not action.disabled then
      return action
    end
  end
end
wait_for("enabled action", 30, optimize_action)

local start = vim.uv.hrtime()
vim.lsp.buf.code_action({
  apply = true,
  context = { diagnostics = {}, only = { "refactor.rewrite" } },
  filter = function(action)
    return action.title == "Optimize this kernel"
  end,
})
local source = vim.api.nvim_get_current_buf()
local function text()
  return table.concat(vim.api.nvim_buf_get_lines(source, 0, -1, true), "\n")
end
if way == "cancel" then
  -- In the middle: some candidates have been judged.
  wait_for("progress", 60, function()
    return reports > 12
  end)
  client():notify("window/workDoneProgress/cancel", { token = token })
  wait_for("end", 10, function()
    return ended
  end)
  vim.wait(500)
  if text() ~= before then
    fail("the text changed though the search was cancelled")
  end
else
  wait_for("diff", 120, function()
    return #vim.api.nvim_list_tabpages() == 2 and vim.wo.diff
  end)
  say({ asked = (vim.wo.winbar:gsub("%%%%", "%%")) })
  vim.cmd("Warpsmith accept")
  wait_for("edit", 10, function()
    return text() ~= before and vim.api.nvim_get_current_buf() == source
  end)
  vim.cmd.write()
end
say({ seconds = (vim.uv.hrtime() - start) / 1e9, reports = reports })
vim.lsp.stop_client(vim.lsp.get_clients())
wait_for("end of the server", 10, function()
  return #vim.lsp.get_clients() == 0
end)
vim.cmd("qall!")
