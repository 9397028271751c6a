-- nvim --headless --clean -l session.lua PLUGIN SERVER FILE enable|setup
-- Opens FILE as a user would, and applies the quick fix. Ends with status 1 and a reason when something is not as it should.
local plugin, server, file, way = unpack(arg)
local common = dofile(vim.fs.dirname(arg[0]) .. "/common.lua")
local wait_for = common.wait_for

local function line(number)
  return vim.api.nvim_buf_get_lines(0, number - 1, number, true)[1]
end

common.load(plugin)
local config = { cmd = { server, "serve" }, settings = { warpsmith = { select = { "L002" } } } }
if way == "enable" then
  assert(vim.fn.has("nvim-0.11") == 1, "too old for vim.lsp.enable")
  vim.lsp.config("warpsmith", config)
  vim.lsp.enable("warpsmith")
else
  require("warpsmith").setup(config)
end

common.open(file)
local client = vim.lsp.get_clients({ bufnr = 0 })[1]
-- Neovim 0.10 offers no other than UTF-16.
local encoding = vim.fn.has("nvim-0.11") == 1 and "utf-8" or "utf-16"
assert(client.offset_encoding == encoding, client.offset_encoding)

-- The diagnostic, at its place.
wait_for("diagnostic", function()
  return #vim.diagnostic.get(0) == 1
end)
local found = vim.diagnostic.get(0)[1]
assert(found.code == "L002" and found.source == "warpsmith", vim.inspect(found))
assert(found.severity == vim.diagnostic.severity.ERROR, vim.inspect(found))
local wrong = line(found.lnum + 1)
assert(wrong:sub(found.col + 1, found.end_col) == "tl.float32(n)", wrong)
io.stdout:write(("ok %s %d:%d %s\n"):format(found.code, found.lnum + 1, found.col + 1, found.message))

-- Hover shows the rule's page.
vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col + 3 })
local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
local hover = vim.lsp.buf_request_sync(0, "textDocument/hover", params, 10000)
local text = hover[client.id].result.contents.value
assert(text:find("dtype-called", 1, true), text)
params.position = { line = 6, character = 4 }
hover = vim.lsp.buf_request_sync(0, "textDocument/hover", params, 10000)
text = vim.inspect(hover[client.id].result)
assert(text:find("int32", 1, true), text)

-- Completion, the signature of a call, and a definition.
local function ask(method, needle)
  local number = vim.fn.search(needle, "ew")
  assert(number > 0, needle)
  local column = vim.api.nvim_win_get_cursor(0)[2]
  vim.api.nvim_win_set_cursor(0, { number, column })
  local position = vim.lsp.util.make_position_params(0, client.offset_encoding)
  position.position.character = position.position.character + 1
  return vim.lsp.buf_request_sync(0, method, position, 10000)[client.id].result
end
local items = ask("textDocument/completion", "tl\\.arange").items
local arange = vim.iter(items):find(function(item)
  return item.label == "arange"
end)
assert(arange and arange.detail == "arange(start, end)", vim.inspect(arange))
local signature = ask("textDocument/signatureHelp", "tl\\.arange(0,")
assert(signature.signatures[1].label == "arange(start, end)" and signature.activeParameter == 1, vim.inspect(signature))
local definition = ask("textDocument/definition", "tl\\.store(x_ptr + offsets")
assert(definition[1].range.start.line == 6 and definition[1].range.start.character == 4, vim.inspect(definition))
vim.api.nvim_win_set_cursor(0, { 9, 21 })
vim.lsp.buf.definition()
wait_for("jump to the definition", function()
  return vim.api.nvim_win_get_cursor(0)[1] == 7
end)
vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col + 3 })
io.stdout:write("ok completion, signature, definition\n")

-- The quick fix, chosen as a user would who has only one to choose from.
vim.lsp.buf.code_action({
  apply = true,
  context = { only = { "quickfix" } },
  filter = function(action)
    return action.isPreferred
  end,
})
wait_for("applied fix", function()
  return line(found.lnum + 1):find("tl.cast(n, tl.float32)", 1, true)
end)
wait_for("end of the diagnostic", function()
  return #vim.diagnostic.get(0) == 0
end)
io.stdout:write("ok applied: " .. line(found.lnum + 1) .. "\n")

-- Taken back and ignored instead.
vim.cmd.undo()
wait_for("diagnostic after undo", function()
  return #vim.diagnostic.get(0) == 1
end)
vim.lsp.buf.code_action({
  apply = true,
  filter = function(action)
    return action.title:find("^Ignore L002")
  end,
})
wait_for("suppression", function()
  return line(found.lnum + 1):find("# warpsmith: ignore[L002]", 1, true) and #vim.diagnostic.get(0) == 0
end)
assert(vim.fn.exists(":Warpsmith") == 2 and require("warpsmith").status() == "")
io.stdout:write("ok ignored: " .. line(found.lnum + 1) .. "\n")

common.stop()
io.stdout:write("ok done\n")
vim.cmd("qall!")
