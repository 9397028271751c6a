((for_statement
  right: (identifier)) @here)
