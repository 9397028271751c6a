--- `:Warpsmith`
local M = {}

local function warpsmith()
  return require("warpsmith")
end

local function actions()
  return require("warpsmith.actions")
end

local function client()
  return require("warpsmith.client")
end

--- What a search is told: seconds, `numbers` for no other changes than of numbers, `ask`.
local function search(kind)
  return function(words)
    local more = {}
    for _, word in ipairs(words) do
      if word == "numbers" then
        more.rewrites = false
      elseif word == "ask" then
        more.ask = true
      else
        more.budget = tonumber(word)
      end
    end
    warpsmith()[kind](more)
  end
end

--- The subcommands: what they do and what may follow them.
M.all = {
  optimize = { run = search("optimize"), words = { "ask", "numbers", "30", "120", "600" }, takes_seconds = true },
  resume = { run = search("resume"), words = { "numbers", "30", "120", "600" }, takes_seconds = true },
  measure = { words = {} },
  report = { words = {} },
  record = {
    words = { "again" },
    run = function(words)
      warpsmith().record(words[1] == "again")
    end,
  },
  inspect = {
    words = { "ttir", "ttgir", "llir", "ptx", "sass", "amdgcn" },
    run = function(words)
      warpsmith().inspect(words[1])
    end,
  },
  resources = { words = {} },
  memory = {
    words = { "reproducer", "dispute", "mute", "list" },
    run = function(words)
      if words[1] and words[1] ~= "list" then
        actions().memory(words[1])
      else
        require("warpsmith.terminal").run({ "memory", "list" })
      end
    end,
  },
  accept = { words = {} },
  discard = { words = {} },
  stop = {
    words = { "all" },
    run = function(words)
      warpsmith().stop(words[1] == "all")
    end,
  },
  status = {
    words = {},
    run = function()
      require("warpsmith.status").show()
    end,
  },
  doctor = {
    words = {},
    run = function()
      require("warpsmith.terminal").run({ "doctor" })
    end,
  },
  health = {
    words = {},
    run = function()
      vim.cmd("checkhealth warpsmith")
    end,
  },
  log = {
    words = {},
    run = function()
      require("warpsmith.terminal").log()
    end,
  },
  restart = { words = {} },
}

local function names()
  local all = vim.tbl_keys(M.all)
  table.sort(all)
  return all
end

--- The first word that may not follow a subcommand.
local function first_wrong(subcommand, words)
  return vim.iter(words):find(function(word)
    local is_seconds = subcommand.takes_seconds and (tonumber(word) or 0) > 0
    return not vim.tbl_contains(subcommand.words, word) and not is_seconds
  end)
end

--- Runs a subcommand; without one it is `status`.
function M.run(command)
  local name = command.fargs[1] or "status"
  local words = vim.list_slice(command.fargs, 2)
  local subcommand = M.all[name]
  if not subcommand then
    return client().warn(("there is no `:Warpsmith %s`; there are %s"):format(name, table.concat(names(), ", ")))
  end
  local wrong = first_wrong(subcommand, words)
  if wrong then
    local may = #subcommand.words == 0 and "nothing" or table.concat(subcommand.words, ", ")
    return client().warn(("`:Warpsmith %s` is followed by %s, not by `%s`"):format(name, may, wrong))
  end
  if subcommand.run then
    subcommand.run(words)
  else
    warpsmith()[name]()
  end
end

--- What may stand at the cursor of the command line.
function M.complete(start, line, position)
  local typed = line:sub(1, position - #start):match("W%a*%s+(.*)$") or ""
  local before = vim.split(typed, "%s+", { trimempty = true })
  local subcommand = M.all[before[1]]
  local words = #before == 0 and names() or (subcommand and subcommand.words or {})
  return vim.tbl_filter(function(word)
    return vim.startswith(word, start) and not vim.tbl_contains(before, word)
  end, words)
end

return M
