((assignment
  left: (subscript)) @here)
