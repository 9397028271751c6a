((assignment
  left: (attribute)) @here)
