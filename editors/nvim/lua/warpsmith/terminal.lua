--- Commands of the program, and what they write.
local M = {}

--- The program for the current buffer, with arguments; says why where there is none.
local function command(arguments)
  local server = require("warpsmith.server")
  local root = server.root_of(0)
  local cmd, why = server.command(root)
  if not cmd then
    require("warpsmith.client").warn(why)
    return nil
  end
  -- All before the last word, `serve`: `cmd` may name a wrapper with arguments of its own.
  local words = vim.list_slice(cmd, 1, math.max(1, #cmd - 1))
  return vim.list_extend(words, arguments), root or vim.fn.getcwd()
end

--- Runs a command in a terminal below: it takes a while and is the user's to watch.
function M.run(arguments)
  local words, folder = command(arguments)
  if not words then
    return
  end
  vim.cmd("botright new")
  vim.bo.bufhidden = "wipe"
  if vim.fn.has("nvim-0.11") == 1 then
    vim.fn.jobstart(words, { cwd = folder, term = true })
  else
    vim.fn.termopen(words, { cwd = folder })
  end
end

--- Opens Neovim's log, which has what the server writes.
function M.log()
  vim.cmd("botright split " .. vim.fn.fnameescape(require("vim.lsp.log").get_filename()))
  vim.cmd("normal! G")
end

return M
