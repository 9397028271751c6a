-- nvim --headless --clean -l examples.lua PLUGIN SERVER FOLDER
-- Opens every example as a user would; prints each finding as "FILE LINE CODE"; then mends one by its quick fix.
local plugin, server, folder = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local wait_for = common.wait_for

common.load(plugin)
vim.lsp.config("warpsmith", { cmd = { server, "serve" } })
vim.lsp.enable("warpsmith")

-- A marker that is always found ends each file, so that "no finding" is not mistaken for "not yet checked".
local marker = { "", "@triton.jit", "def marker(n):", "    tl.float32(n)" }
local files = vim.fn.glob(folder .. "/*.py", true, true)
table.sort(files)
for _, file in ipairs(files) do
  vim.cmd.edit(file)
  local lines = vim.api.nvim_buf_line_count(0)
  vim.api.nvim_buf_set_lines(0, lines, lines, true, marker)
  local function marked()
    return vim.iter(vim.diagnostic.get(0)):any(function(found)
      return found.lnum == lines + #marker - 1
    end)
  end
  wait_for("diagnostics of " .. file, marked)
  for _, found in ipairs(vim.diagnostic.get(0)) do
    if found.lnum < lines then
      io.stdout:write(("found %s %d %s\n"):format(vim.fs.basename(file), found.lnum + 1, found.code))
    end
  end
  vim.cmd("undo")
end

vim.cmd.edit(folder .. "/mistakes.py")
local function unknown()
  return vim.iter(vim.diagnostic.get(0)):find(function(found)
    return found.code == "L001"
  end)
end
wait_for("L001", unknown)
local found = unknown()
vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col })
vim.lsp.buf.code_action({
  apply = true,
  context = { only = { "quickfix" } },
  filter = function(action)
    return action.isPreferred
  end,
})
wait_for("fix", function()
  return not unknown()
end)
io.stdout:write("fixed " .. vim.trim(vim.api.nvim_buf_get_lines(0, found.lnum, found.lnum + 1, true)[1]) .. "\n")
io.stdout:write("ok done\n")
vim.cmd("qall!")
