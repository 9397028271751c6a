-- nvim --headless --clean -l package.lua PLUGIN SERVER FILE FOLDER
-- The plugin as a package of FOLDER, with its help; then its `lsp/warpsmith.lua` alone, as nvim-lspconfig has such files.
local plugin, server, file, folder = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")

vim.opt.packpath:prepend(folder)
vim.cmd("packloadall!")
vim.cmd("helptags ALL")
vim.cmd("help warpsmith")
assert(vim.api.nvim_buf_get_name(0) == vim.uv.fs_realpath(folder) .. "/pack/all/start/warpsmith/doc/warpsmith.txt")
local tags = {}
for tag in common.text():gmatch("%*([%w%p]+)%*") do
  vim.cmd("help " .. tag)
  tags[#tags + 1] = tag
end
-- Neovim 0.10 lacks some of what the help leads to.
for link in common.text():gmatch(vim.lsp.enable and "|([%w%p]+)|" or "|(warpsmith[%w%p]*)|") do
  assert(pcall(vim.cmd.help, link), "no help for " .. link)
end
-- Each command has its place.
for name in pairs(require("warpsmith.commands").all) do
  assert(vim.tbl_contains(tags, name == "status" and ":Warpsmith" or ":Warpsmith-" .. name), name)
end
assert(vim.fn.exists(":Warpsmith") == 2)
common.say("ok %d tags", #tags)
vim.cmd("helpclose")

if vim.lsp.enable then
  vim.opt.packpath:remove(folder)
  vim.api.nvim_del_augroup_by_name("warpsmith")
  for name in pairs(package.loaded) do
    if vim.startswith(name, "warpsmith") then
      package.loaded[name] = nil
    end
  end
  local alone = folder .. "/alone"
  vim.fn.mkdir(alone .. "/lsp", "p")
  assert(vim.uv.fs_copyfile(plugin .. "/lsp/warpsmith.lua", alone .. "/lsp/warpsmith.lua"))
  vim.opt.runtimepath = { alone, vim.env.VIMRUNTIME }
  vim.env.PATH = vim.fs.dirname(server) .. ":" .. vim.env.PATH
  assert(not pcall(require, "warpsmith.client"))
  vim.cmd("filetype plugin on")
  vim.lsp.enable("warpsmith")
  common.open(file)
  common.wait_for("diagnostic", function()
    return #vim.diagnostic.get(0) > 0
  end)
  common.say("ok alone")
end
common.done()
