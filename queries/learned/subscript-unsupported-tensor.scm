((subscript
  value: (_)
  subscript: (ellipsis)
  . subscript: (_)) @here)
