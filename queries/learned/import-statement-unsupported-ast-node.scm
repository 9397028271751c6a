((import_statement) @here)
