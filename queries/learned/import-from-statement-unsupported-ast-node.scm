((import_from_statement) @here)
