--- The searches and recordings that run, by the progress that the server reports of them.
local M = {}

--- By their token, which is also the job's name.
local jobs = {}

--- Takes a report, as the event `LspProgress` has it.
function M.report(data)
  local token, value = data.params.token, data.params.value
  if type(token) ~= "string" or not vim.startswith(token, "warpsmith/") then
    return
  end
  local key = data.client_id .. " " .. token
  if value.kind == "end" then
    jobs[key] = nil
  else
    local known = jobs[key] or {}
    jobs[key] = {
      id = token,
      client = data.client_id,
      title = value.title or known.title or "",
      percentage = value.percentage or known.percentage or 0,
      message = value.message or known.message or "",
      began = known.began or vim.uv.now(),
    }
  end
  vim.cmd.redrawstatus()
end

--- A server is gone, and its jobs with it.
function M.forget(client)
  for key, job in pairs(jobs) do
    if job.client == client then
      jobs[key] = nil
    end
  end
  vim.cmd.redrawstatus()
end

--- All jobs, the oldest first. Each has `title`, `percentage`, `message` and `began`.
function M.all()
  local all = vim.tbl_values(jobs)
  table.sort(all, function(a, b)
    return a.began < b.began or (a.began == b.began and a.id < b.id)
  end)
  return all
end

--- A job in a few words.
function M.text(job)
  return vim.trim(("%s %d%% %s"):format(job.title, job.percentage, job.message))
end

--- Stops a job.
function M.stop(job)
  local client = vim.lsp.get_client_by_id(job.client)
  if client then
    require("warpsmith.client").execute(client, "warpsmith.cancel", { job = job.id })
  end
end

return M
