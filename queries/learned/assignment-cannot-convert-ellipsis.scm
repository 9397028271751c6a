((assignment
  right: (ellipsis)) @here)
