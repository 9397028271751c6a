((subscript
  value: (_) @p1
  subscript: (_)
  . subscript: (_) @p3) @here
  (#kind? @p1 "float")
  (#kind? @p3 "int"))
