((try_statement) @here)
