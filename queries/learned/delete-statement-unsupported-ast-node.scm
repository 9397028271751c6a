((delete_statement
  . (identifier) .) @here)
