-- nvim --headless --clean -l commands.lua PLUGIN SERVER FILE
-- The commands where no server runs: each is completed and says something; and where a server is looked for.
local plugin, server, file = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local wait_for, heard = common.wait_for, common.heard

common.load(plugin)
common.listen()
local folder = vim.fs.dirname(file)
vim.cmd.edit(file)
vim.fn.mkdir(folder .. "/empty")
vim.env.PATH, vim.env.VIRTUAL_ENV, vim.env.CONDA_PREFIX = folder .. "/empty", nil, nil

local all = vim.fn.getcompletion("Warpsmith ", "cmdline")
local known = vim.tbl_keys(require("warpsmith.commands").all)
table.sort(known)
assert(vim.deep_equal(all, known), vim.inspect(all))
assert(vim.deep_equal(vim.fn.getcompletion("Warpsmith me", "cmdline"), { "measure", "memory" }))
assert(vim.deep_equal(vim.fn.getcompletion("Warpsmith inspect t", "cmdline"), { "ttir", "ttgir" }))
assert(vim.deep_equal(vim.fn.getcompletion("Warpsmith optimize ask n", "cmdline"), { "numbers" }))
assert(vim.deep_equal(vim.fn.getcompletion("Warpsmith nothing ", "cmdline"), {}))

--- What a command says.
local function says(command)
  local before = #common.told
  vim.cmd(command)
  assert(#common.told == before + 1, command .. " says " .. (#common.told - before))
  return common.told[#common.told]
end
local function assert_says(command, words)
  local text = says(command)
  assert(text:find(words, 1, true), command .. " says: " .. text)
end
local off = 'it is not enabled: call `require("warpsmith").setup()`'
if vim.lsp.enable then
  off = 'it is not enabled: call `vim.lsp.enable("warpsmith")`'
end
local other = {
  memory = "there is no `warpsmith`",
  doctor = "there is no `warpsmith`",
  accept = "nothing is offered",
  discard = "nothing is offered",
  stop = "nothing runs that could be stopped",
}
for _, name in ipairs(all) do
  if name == "log" or name == "health" then
    local windows = #vim.api.nvim_list_wins()
    vim.cmd("Warpsmith " .. name)
    assert(#vim.api.nvim_list_wins() == windows + 1, name)
    vim.cmd("bwipeout!")
  else
    assert_says("Warpsmith " .. name, other[name] or off)
  end
end
assert_says("Warpsmith memory mute", off)
assert_says("Warpsmith", "no server for this buffer: " .. off)
assert_says("Warpsmith optimise", "there is no `:Warpsmith optimise`; there are accept, ")
assert_says("Warpsmith inspect tgir", "is followed by ttir, ttgir, llir, ptx, sass, amdgcn, not by `tgir`")
assert_says("Warpsmith inspect 3", "not by `3`")
assert_says("Warpsmith report 3", "is followed by nothing, not by `3`")
assert(require("warpsmith").status() == "" and #require("warpsmith").jobs() == 0)
common.say("ok %d commands without a server", #all)

-- Enabled, and no program: it is said once.
require("warpsmith").setup({})
for _ = 1, 2 do
  vim.cmd("edit!")
end
local lack = "there is no `warpsmith` in the Python environment or on the PATH"
local count = #vim.tbl_filter(function(text)
  return text:find(lack, 1, true) ~= nil
end, common.told)
-- Two of them are of the commands above.
assert(count == 3, vim.inspect(common.told))
assert_says("Warpsmith optimize", lack)
assert_says("Warpsmith status", lack)
require("warpsmith").setup({ cmd = { folder .. "/no-such-program", "serve" } })
assert_says("Warpsmith record", "no-such-program`, which `cmd` names, cannot be run")

-- The first that there is: the PATH, then the project's environment, then the active one.
local function place(environment)
  local programs = ("%s/%s/bin"):format(folder, environment)
  vim.fn.mkdir(programs, "p")
  assert(vim.uv.fs_symlink(server, programs .. "/warpsmith"))
  return folder .. "/" .. environment
end
local launch = require("warpsmith.server").launch
local function found(from)
  local cmd, why = require("warpsmith.server").command(folder)
  assert(cmd and why == from, ("%s instead of %s"):format(why, from))
  return cmd[1]
end
require("warpsmith").setup({ cmd = launch })
vim.env.PATH = place("path") .. "/bin"
assert(found("PATH") == folder .. "/path/bin/warpsmith")
vim.env.CONDA_PREFIX = place("conda")
assert(found("CONDA_PREFIX") == folder .. "/conda/bin/warpsmith")
place(".venv")
assert(found(".venv") == folder .. "/.venv/bin/warpsmith")
require("warpsmith").setup({ cmd = launch, init_options = { workspaceTrusted = false } })
found("CONDA_PREFIX")
require("warpsmith").setup({ cmd = launch, init_options = { workspaceTrusted = true } })
vim.env.VIRTUAL_ENV = place("active")
found("VIRTUAL_ENV")
common.open(file)
local first = common.client().id
vim.cmd("Warpsmith restart")
wait_for("server of the environment", function()
  return common.client() and common.client().id ~= first
end)
vim.cmd("Warpsmith status")
wait_for("status", function()
  return heard("/active/bin/warpsmith " .. require("warpsmith.version") .. " (VIRTUAL_ENV)")
end)
common.say("ok found")

-- Its own commands run in a terminal.
vim.cmd("Warpsmith memory list")
assert(vim.bo.buftype == "terminal")
wait_for("list", function()
  -- A rule that the program brings along: its code, its state, how often it was met, and by which Tritons.
  return common.text():find("S%d%d%d  %l+ +%d+  3%.%d")
end)
vim.cmd("bwipeout!")
vim.cmd("edit empty.txt")
assert_says("Warpsmith report", "this is no Python file")
common.done()
