((continue_statement) @here)
