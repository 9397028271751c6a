-- nvim --headless --clean -l optimize.lua PLUGIN SERVER FILE
-- Makes the kernel of FILE faster as a user would: stops a search, goes on with it, discards what it finds, accepts what
-- another one finds, and takes that back. Then the server dies in the middle of a search.
local plugin, server, file = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local wait_for, heard, text = common.wait_for, common.heard, common.text

common.load(plugin)
common.listen()
local pages = {}
vim.ui.open = function(page)
  pages[#pages + 1] = page
  return vim.system({ "true" })
end
local warpsmith = require("warpsmith")
warpsmith.setup({ cmd = { server, "serve" } })
common.open(file)
local source, window, original = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win(), text()

-- Without a recorded call there is nothing to measure on.
common.ask_until("Warpsmith record", "recording", function()
  return heard("Recorded ")
end)
common.go_to("def scale")
vim.cmd("Warpsmith resume")
wait_for("reason", function()
  return heard("no search of this kernel was stopped")
end)

-- A search is seen, and stopped.
local function searching()
  return warpsmith.status():match("^Optimizing scale %d+%%")
end
local function at_rest()
  return warpsmith.status() == ""
end
vim.cmd("Warpsmith optimize")
wait_for("progress", searching)
assert(#warpsmith.jobs() == 1)
vim.cmd("Warpsmith optimize")
wait_for("refusal", function()
  return heard("optimized already")
end)
vim.cmd("Warpsmith status")
wait_for("status", function()
  return heard("Optimizing scale") and heard("compiler: ") and heard("GPU: toy (simulated)")
end)
wait_for("candidate", function()
  return warpsmith.status():find("candidates", 1, true)
end)
local seen = warpsmith.status()
vim.cmd("Warpsmith stop")
wait_for("end", at_rest)
common.say("ok progress: %s; stopped", seen)

-- What it finds is shown and not made.
local function offered()
  return #vim.api.nvim_list_tabpages() == 2 and vim.wo.diff
end
local function closed()
  return #vim.api.nvim_list_tabpages() == 1
end
common.ask_until("Warpsmith resume", "second run", searching)
wait_for("offer", offered, 120)
local windows = vim.api.nvim_tabpage_list_wins(0)
assert(#windows == 2 and vim.api.nvim_win_get_buf(windows[1]) == source and vim.wo[windows[1]].diff)
assert(not vim.bo.modifiable and text() ~= original and text(source) == original)
assert(vim.wo.winbar:find("A accept   q discard   scale: ", 1, true), vim.wo.winbar)
assert(vim.bo.filetype == "" and #vim.lsp.get_clients({ bufnr = 0 }) == 0, "a server for what is offered")
common.say("ok offer: %s", vim.wo.winbar)
vim.cmd("tabclose")
wait_for("status of the discarded", function()
  return closed() and not vim.wo[window].diff
end)
assert(text(source) == original and vim.api.nvim_get_current_win() == window)
vim.cmd("Warpsmith accept")
assert(heard("nothing is offered"))

-- An edit meanwhile must be taken back first; what is accepted is one step to undo.
common.ask_until("Warpsmith optimize", "third run", searching)
wait_for("offer", offered, 120)
local faster = text()
vim.api.nvim_buf_set_lines(source, 0, 0, true, { "# mine" })
vim.cmd.normal("A")
assert(heard("the file has changed since") and offered())
vim.api.nvim_buf_call(source, vim.cmd.undo)
vim.cmd.normal("A")
wait_for("change", function()
  return closed() and text() == faster
end)
assert(vim.api.nvim_get_current_win() == window and not vim.wo.diff and not vim.bo.readonly)
vim.cmd.undo()
assert(text() == original, text())
vim.cmd.redo()
assert(text() == faster, text())
vim.cmd.undo()
common.say("ok accepted, undone")

common.go_to("def scale")
vim.cmd("Warpsmith report")
wait_for("report", function()
  return #pages == 1
end)
common.say("ok report %s", vim.fs.basename(pages[1]))

-- The server dies: nothing is left of the search, and it can be started again.
local function process()
  return vim.iter(vim.api.nvim_get_proc_children(vim.fn.getpid())):find(function(id)
    return (vim.api.nvim_get_proc(id) or {}).name == "warpsmith"
  end)
end
common.ask_until("Warpsmith optimize", "fourth run", searching)
vim.uv.kill(process(), "sigkill")
wait_for("word of the end", function()
  return heard("the server has ended (signal 9)")
end)
assert(at_rest())
wait_for("end of the client", function()
  return common.client() == nil
end)
vim.cmd("Warpsmith optimize")
assert(heard("`:Warpsmith restart` starts it"))
vim.cmd("Warpsmith restart")
wait_for("new server", common.client)
vim.api.nvim_buf_set_lines(0, -1, -1, true, { "", "@triton.jit", "def wrong(n):", "    tl.float32(n)" })
wait_for("diagnostic", function()
  return #vim.diagnostic.get(0) > 0
end)
common.say("ok restarted")

-- One that runs is started anew, too, without a word.
local first, before = common.client().id, #common.told
vim.cmd("Warpsmith restart")
wait_for("another server", function()
  return common.client() and common.client().id ~= first
end)
assert(#common.told == before, vim.inspect(common.told))
common.stop()
common.done()
