-- nvim --headless --clean -l health.lua PLUGIN SERVER FILE
-- The report on a machine where all is there, and where the program is another than the plugin's.
local plugin, server, file = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local text = common.text

common.load(plugin)
common.listen()
require("warpsmith").setup({ cmd = { server, "serve" } })
common.open(file)
vim.cmd("checkhealth warpsmith")
for _, piece in ipairs({
  "Neovim " .. tostring(vim.version()),
  "the server is enabled",
  server .. " (from cmd)",
  "as the plugin's",
  "warpsmith.toml",
  "Python: ",
  "Triton: 3.",
  "torch: installed",
  "GPU: ",
  "Checking: against",
  "Compiling: ",
  "compiler: ",
}) do
  assert(text():find(piece, 1, true), piece .. " is missing in\n" .. text())
end
for _, word in ipairs({ "WARNING", "ERROR" }) do
  assert(not text():find(word, 1, true), text())
end
common.say("ok clean")
vim.cmd("bwipeout!")

package.loaded["warpsmith.version"] = "9.9.9"
vim.g.warpsmith = { inlay_hint = true }
vim.cmd("checkhealth warpsmith")
assert(text():find("and the plugin is of 9.9.9", 1, true), text())
assert(text():find("`inlay_hint`, which is no option", 1, true), text())
vim.cmd("bwipeout!")
common.say("ok other version")

require("warpsmith").setup({ cmd = { "no-such-program" } })
common.stop()
vim.cmd("checkhealth warpsmith")
assert(text():find("`no-such-program`, which `cmd` names, cannot be run", 1, true), text())
common.done()
