-- nvim --headless --clean -l inspect.lua PLUGIN SERVER FILE
-- Opens FILE, puts the cursor into its kernel, and has its PTX opened.
local plugin, server, file = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local wait_for = common.wait_for

common.load(plugin)
require("warpsmith").setup({ cmd = { server, "serve" } })
common.open(file)

local told
vim.notify = function(message)
  told = message
end
vim.api.nvim_win_set_cursor(0, { 1, 0 })
vim.cmd("WarpsmithInspect")
wait_for("reason", function()
  return told and told:find("there is no kernel here", 1, true)
end)

assert(vim.deep_equal(vim.fn.getcompletion("WarpsmithInspect t", "cmdline"), { "ttir", "ttgir" }))
vim.api.nvim_win_set_cursor(0, { 7, 4 })
vim.cmd("WarpsmithInspect ptx")
wait_for("text", function()
  return vim.api.nvim_buf_get_name(0):match("scale%.ptx$") and vim.api.nvim_buf_line_count(0) > 10
end)
local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n")
assert(text:find("// kernel.py:9: tl.store(x_ptr + offsets, factor, mask=offsets < n)", 1, true), text)
io.stdout:write(("ok %s %s\n"):format(vim.fn.expand("%:t"), vim.fn.getline(1)))
io.stdout:write("ok done\n")
vim.cmd("qall!")
