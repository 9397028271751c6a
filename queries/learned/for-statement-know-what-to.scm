((for_statement
  left: (_)
  alternative: (_)) @here)
