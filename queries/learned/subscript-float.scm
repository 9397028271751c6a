((subscript
  value: (_) @p1
  subscript: (ellipsis)
  . subscript: (_)) @here
  (#kind? @p1 "float"))
