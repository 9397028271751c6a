((named_expression
  value: (_)) @here)
