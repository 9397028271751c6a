if vim.g.loaded_warpsmith then
  return
end
vim.g.loaded_warpsmith = true

vim.api.nvim_create_user_command("Warpsmith", function(command)
  require("warpsmith.commands").run(command)
end, {
  desc = "Optimize, record and inspect Triton kernels",
  nargs = "*",
  complete = function(...)
    return require("warpsmith.commands").complete(...)
  end,
})

local group = vim.api.nvim_create_augroup("warpsmith", { clear = true })
vim.api.nvim_create_autocmd("LspAttach", {
  group = group,
  callback = function(event)
    local client = vim.lsp.get_client_by_id(event.data.client_id)
    if client and client.name == "warpsmith" then
      require("warpsmith.features").attach(event.buf)
    end
  end,
})
vim.api.nvim_create_autocmd("LspProgress", {
  group = group,
  callback = function(event)
    require("warpsmith.jobs").report(event.data)
  end,
})
