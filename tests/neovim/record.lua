-- nvim --headless --clean -l record.lua PLUGIN SERVER FILE
-- Opens FILE, which runs itself, and has its calls recorded.
local plugin, server, file = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local heard = common.heard

common.load(plugin)
common.listen()
require("warpsmith").setup({ cmd = { server, "serve" } })
common.open(file)
common.ask_until("Warpsmith record again", "refusal", function()
  return heard("no earlier command has recorded calls of this file")
end)
common.ask_until("Warpsmith record", "recording", function()
  return heard("Recorded ")
end)
common.say("ok %s", heard("Recorded "))
common.done()
