if vim.g.loaded_warpsmith then
  return
end
vim.g.loaded_warpsmith = true

local warpsmith = require("warpsmith")
warpsmith.watch()
vim.api.nvim_create_user_command("WarpsmithOptimize", warpsmith.optimize, { desc = "Optimize the kernel under the cursor" })
vim.api.nvim_create_user_command("WarpsmithStop", warpsmith.stop, { desc = "Stop optimizing" })
