((with_statement) @here)
