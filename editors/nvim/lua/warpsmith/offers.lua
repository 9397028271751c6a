--- A faster kernel is shown as a diff in a tab page of its own before it is taken.
local M = {}

--- Those that wait for an answer, by their number.
local offers = {}
local count = 0

local function client_module()
  return require("warpsmith.client")
end

--- The edit of one document that is to be confirmed, and what it is about; nothing if this is another edit.
local function to_confirm(edit)
  local changes = edit.documentChanges or {}
  if #changes ~= 1 or changes[1].kind then
    return nil
  end
  for _, annotation in pairs(edit.changeAnnotations or {}) do
    if annotation.needsConfirmation then
      return changes[1], annotation.description
    end
  end
end

local function lines_of(bufnr)
  return vim.api.nvim_buf_get_lines(bufnr, 0, -1, true)
end

--- A buffer with the text as it would be.
local function offered_buffer(offer)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, true, offer.lines)
  vim.lsp.util.apply_text_edits(vim.deepcopy(offer.edits), bufnr, offer.encoding)
  local name = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(offer.bufnr), ":t")
  vim.api.nvim_buf_set_name(bufnr, ("warpsmith://offer/%d/%s"):format(offer.number, name))
  local options = vim.bo[bufnr]
  options.buflisted, options.modifiable, options.bufhidden = false, false, "wipe"
  -- Not the file type, for which servers would be started.
  options.syntax = vim.bo[offer.bufnr].filetype
  return bufnr
end

--- Closes the tab page of an offer and goes back to where the user was.
local function close(offer)
  if not (offer.tab and vim.api.nvim_tabpage_is_valid(offer.tab)) then
    return
  end
  local was_in_it = vim.api.nvim_get_current_tabpage() == offer.tab
  if vim.api.nvim_win_is_valid(offer.left) then
    vim.api.nvim_win_call(offer.left, function()
      vim.cmd("diffoff")
      vim.wo.winbar = ""
    end)
  end
  -- The last tab page cannot be closed.
  if not pcall(vim.cmd.tabclose, vim.api.nvim_tabpage_get_number(offer.tab)) then
    pcall(vim.api.nvim_buf_delete, offer.offered, { force = true })
  elseif was_in_it and vim.api.nvim_win_is_valid(offer.from) then
    vim.api.nvim_set_current_win(offer.from)
  end
end

--- Ends an offer; the server is told.
local function finish(offer, answer)
  if offers[offer.number] ~= offer then
    return
  end
  offers[offer.number] = nil
  -- Not at once: the tab page may be closing, or the server's request not yet be waiting.
  vim.schedule(function()
    close(offer)
    coroutine.resume(offer.waiting, answer)
  end)
end

--- Makes the edits, as one step to undo.
local function take(offer)
  if not vim.deep_equal(lines_of(offer.bufnr), offer.lines) then
    return client_module().warn("the file has changed since: undo that to accept, or discard and optimize again")
  end
  vim.api.nvim_buf_call(offer.bufnr, function()
    vim.cmd("let &g:undolevels = &g:undolevels")
  end)
  local ok, why = pcall(vim.lsp.util.apply_text_edits, vim.deepcopy(offer.edits), offer.bufnr, offer.encoding)
  finish(offer, { applied = ok, failureReason = not ok and tostring(why) or nil })
end

--- What is written above the two sides.
local function winbars(offer, right)
  local function plain(text)
    return (text:gsub("%%", "%%%%"):gsub("\n", " "))
  end
  local keys = require("warpsmith.options").get().keys
  local function key(name)
    return ("%s %s"):format(keys[name] or ":Warpsmith " .. name, name)
  end
  local about = (offer.about or "") ~= "" and plain(" · " .. offer.about) or ""
  vim.wo[offer.left].winbar = plain("as it is")
  -- Where there is too little room, what was measured stays and how it was measured goes.
  vim.wo[right].winbar = plain(("%s   %s   %s"):format(key("accept"), key("discard"), offer.label or "")) .. "%<" .. about
end

local function set_keys(offer)
  for name, key in pairs(require("warpsmith.options").get().keys) do
    if key and M[name] then
      vim.keymap.set("n", key, M[name], { buffer = offer.offered, nowait = true, desc = "Warpsmith: " .. name })
    end
  end
end

--- Opens the tab page: the file on the left, as it would be on the right.
local function show(offer)
  offer.from = vim.api.nvim_get_current_win()
  offer.offered = offered_buffer(offer)
  vim.cmd("tab split")
  offer.tab, offer.left = vim.api.nvim_get_current_tabpage(), vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(offer.left, offer.bufnr)
  vim.cmd("rightbelow vertical split")
  local right = vim.api.nvim_get_current_win()
  vim.api.nvim_win_set_buf(right, offer.offered)
  for _, window in ipairs({ offer.left, right }) do
    vim.api.nvim_win_call(window, function()
      vim.cmd("diffthis")
    end)
  end
  winbars(offer, right)
  set_keys(offer)
  vim.cmd("silent! normal! gg]c")
  -- Whoever closes it does not want it.
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = offer.offered,
    once = true,
    callback = function()
      finish(offer, { applied = false })
    end,
  })
end

--- Shows an offer once nobody is interrupted by that.
local function show_when_free(offer)
  if offers[offer.number] ~= offer then
    return
  end
  local mode = vim.api.nvim_get_mode()
  if mode.blocking or mode.mode ~= "n" or vim.fn.getcmdwintype() ~= "" then
    return vim.defer_fn(function()
      show_when_free(offer)
    end, 100)
  end
  local ok, why = pcall(show, offer)
  if not ok then
    finish(offer, { applied = false, failureReason = tostring(why) })
  end
end

--- The answer to `workspace/applyEdit`, which waits until the user has decided.
function M.apply(err, params, context)
  local change, about = to_confirm(params.edit)
  local client = vim.lsp.get_client_by_id(context.client_id)
  if not change or not client then
    return vim.lsp.handlers["workspace/applyEdit"](err, params, context)
  end
  local bufnr = vim.uri_to_bufnr(change.textDocument.uri)
  local version = change.textDocument.version
  if type(version) == "number" and version ~= vim.lsp.util.buf_versions[bufnr] then
    return { applied = false, failureReason = "the file has changed meanwhile" }
  end
  vim.fn.bufload(bufnr)
  count = count + 1
  local offer = {
    number = count,
    client = client.id,
    encoding = client.offset_encoding,
    bufnr = bufnr,
    lines = lines_of(bufnr),
    label = params.label or "a faster kernel",
    about = about,
    waiting = coroutine.running(),
    -- Without their annotations: the question is asked here.
    edits = vim.tbl_map(function(edit)
      return { range = edit.range, newText = edit.newText }
    end, change.edits),
  }
  offers[offer.number] = offer
  vim.schedule(function()
    show_when_free(offer)
  end)
  return coroutine.yield()
end

--- The offer that is meant. Says so where there is none, or several.
local function meant()
  local all = vim.tbl_values(offers)
  local tab, bufnr = vim.api.nvim_get_current_tabpage(), vim.api.nvim_get_current_buf()
  for _, offer in ipairs(all) do
    if offer.tab == tab or offer.offered == bufnr then
      return offer
    end
  end
  if #all ~= 1 then
    client_module().warn(#all == 0 and "nothing is offered" or "several changes are offered: go to one of the tab pages")
  end
  return #all == 1 and all[1] or nil
end

--- Takes the change that is offered.
function M.accept()
  local offer = meant()
  if offer then
    take(offer)
  end
end

--- Leaves everything as it is.
function M.discard()
  local offer = meant()
  if offer then
    finish(offer, { applied = false })
  end
end

--- What is offered, in words.
function M.all()
  return vim.tbl_map(function(offer)
    return offer.label
  end, vim.tbl_values(offers))
end

--- A server is gone, and nobody waits for an answer.
function M.forget(client)
  for _, offer in pairs(offers) do
    if offer.client == client then
      finish(offer, vim.NIL)
    end
  end
end

return M
