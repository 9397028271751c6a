--- Warpsmith, a language server for Triton kernels, in Neovim. `:help warpsmith` has the rest.
local M = {}

--- Enables the server for Python files. `opts` may hold options of the plugin, and all that `vim.lsp.config` takes.
function M.setup(opts)
  local config = require("warpsmith.options").take(opts or {})
  if vim.lsp.enable then
    vim.lsp.config("warpsmith", config)
    vim.lsp.enable("warpsmith")
  else
    require("warpsmith.server").enable_in_0_10(config)
  end
end

--- How far searches and recordings are, for a status line: an empty string when none runs.
function M.status()
  local jobs = require("warpsmith.jobs")
  return table.concat(vim.tbl_map(jobs.text, jobs.all()), " | ")
end

--- The searches and recordings that run, for status lines of your own.
function M.jobs()
  return vim.deepcopy(require("warpsmith.jobs").all())
end

--- Searches for a faster version of the kernel at the cursor, or of the kernels that the function around it launches.
function M.optimize(opts)
  require("warpsmith.actions").optimize(opts)
end

--- Goes on with the last search, where it was stopped.
function M.resume(opts)
  require("warpsmith.actions").resume(opts)
end

--- Measures the kernel at the cursor against what it was before the last search.
function M.measure(opts)
  require("warpsmith.actions").measure(opts)
end

--- Opens the report of the last search of the kernel at the cursor.
function M.report()
  require("warpsmith.actions").report()
end

--- Runs the file, or with `again` the command that recorded calls of it last, and keeps the calls that launch kernels.
function M.record(again)
  require("warpsmith.actions").record(again or false)
end

--- Opens what the compiler makes of the kernel at the cursor.
function M.inspect(stage)
  require("warpsmith.actions").inspect(stage or "ttgir")
end

--- Says what the kernel at the cursor takes of the GPU.
function M.resources()
  require("warpsmith.actions").resources()
end

--- Takes the change that is offered.
function M.accept()
  require("warpsmith.offers").accept()
end

--- Leaves the change that is offered.
function M.discard()
  require("warpsmith.offers").discard()
end

--- Stops the search or recording that runs. Where several run, asks which one, unless `all` is set.
function M.stop(all)
  local jobs = require("warpsmith.jobs")
  local running = jobs.all()
  if #running == 0 then
    require("warpsmith.client").say("nothing runs that could be stopped")
  elseif all or #running == 1 then
    vim.iter(running):each(jobs.stop)
  else
    vim.ui.select(running, { prompt = "Stop", format_item = jobs.text }, function(job)
      if job then
        jobs.stop(job)
      end
    end)
  end
end

--- Stops the servers and starts them again.
function M.restart()
  local server = require("warpsmith.server")
  if not server.is_enabled() then
    return require("warpsmith.client").warn(server.why_not(0))
  end
  server.restart()
end

return M
