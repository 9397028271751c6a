((match_statement) @here)
