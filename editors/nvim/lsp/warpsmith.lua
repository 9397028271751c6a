-- How Neovim 0.11 and newer start the server: `vim.lsp.enable("warpsmith")`.
return require("warpsmith").config
