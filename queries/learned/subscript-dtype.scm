((subscript
  value: (_) @p1
  subscript: (ellipsis)
  . subscript: (_)) @here
  (#dtype? @p1 "fp32"))
