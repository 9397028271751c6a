((binary_operator
  left: (_)
  operator: "@"
  right: (_)) @here)
