if vim.g.loaded_warpsmith then
  return
end
vim.g.loaded_warpsmith = true

local warpsmith = require("warpsmith")
warpsmith.watch()
vim.api.nvim_create_user_command("WarpsmithOptimize", warpsmith.optimize, { desc = "Optimize the kernel under the cursor" })
vim.api.nvim_create_user_command("WarpsmithInspect", function(command)
  warpsmith.inspect(command.fargs[1])
end, {
  desc = "Open what the compiler makes of the kernel under the cursor",
  nargs = "?",
  complete = function(start)
    return vim.tbl_filter(function(stage)
      return vim.startswith(stage, start)
    end, warpsmith.stages)
  end,
})
vim.api.nvim_create_user_command("WarpsmithRecord", function(command)
  warpsmith.record(command.bang)
end, { desc = "Run the file, or with ! what was run for it last, and record its calls of kernels", bang = true })
vim.api.nvim_create_user_command("WarpsmithStop", warpsmith.stop, { desc = "Stop optimizing and recording" })
