((assignment
  right: (string)) @here)
