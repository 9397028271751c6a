-- nvim --headless --clean -l inspect.lua PLUGIN SERVER FILE
-- Opens FILE, puts the cursor into its kernel, and has its PTX opened; reads what the kernel takes above it.
local plugin, server, file = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local wait_for, heard, text = common.wait_for, common.heard, common.text

common.load(plugin)
common.listen()
require("warpsmith").setup({ cmd = { server, "serve" }, inlay_hints = true, code_lens = true })
common.open(file)
local source, window = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()

wait_for("inlay hint", function()
  return vim.iter(vim.lsp.inlay_hint.get({ bufnr = 0 })):any(function(hint)
    return vim.inspect(hint.inlay_hint.label):find("= 64", 1, true)
  end)
end)
common.say("ok inlay hint")

vim.api.nvim_win_set_cursor(0, { 1, 0 })
vim.cmd("Warpsmith inspect")
wait_for("reason", function()
  return heard("there is no kernel here")
end)
common.go_to("def scale")
vim.cmd("Warpsmith inspect ptx")
wait_for("text", function()
  return vim.api.nvim_buf_get_name(0):match("scale%.ptx$") and vim.api.nvim_buf_line_count(0) > 10
end)
assert(text():find("// kernel.py:9: tl.store(x_ptr + offsets, factor, mask=offsets < n)", 1, true), text())
assert(vim.bo.readonly and #vim.api.nvim_tabpage_list_wins(0) == 2 and vim.api.nvim_win_get_buf(window) == source)
common.say("ok %s %s", vim.fn.expand("%:t"), vim.fn.getline(1))

-- Another stage takes the place of this one, and an edited kernel is shown as it is now.
vim.api.nvim_set_current_win(window)
vim.cmd("Warpsmith inspect")
wait_for("another stage", function()
  return vim.api.nvim_buf_get_name(0):match("scale%.ttgir$")
end)
assert(#vim.api.nvim_tabpage_list_wins(0) == 2)
local before = text()
vim.api.nvim_buf_set_lines(source, 7, 8, true, { "    factor = n * 3" })
vim.api.nvim_set_current_win(window)
vim.cmd("Warpsmith inspect ttgir")
wait_for("fresh text", function()
  return vim.api.nvim_get_current_win() ~= window and text() ~= before
end)
common.say("ok fresh text")

-- What the kernel takes is found out when the file is written.
vim.api.nvim_set_current_win(window)
vim.cmd.write()
local function lens()
  local is_new = vim.lsp.codelens.enable ~= nil
  return vim.iter(vim.lsp.codelens.get(is_new and { bufnr = source } or source)):find(function(lens)
    local title = ((lens.lens or lens).command or {}).title
    return title and title:find("registers", 1, true)
  end)
end
wait_for("lens", lens, 120)
vim.cmd("Warpsmith resources")
wait_for("resources", function()
  return heard("registers")
end)
common.say("ok lens, %s", (heard("registers"):gsub("\n", "; ")))
common.done()
