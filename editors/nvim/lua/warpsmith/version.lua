-- Written by `cargo xtask generate`: the version of the server that this plugin is made for.
return "0.1.0"
