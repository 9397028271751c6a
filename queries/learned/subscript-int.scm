((subscript
  value: (_)
  subscript: (_)
  . subscript: (_) @p3) @here
  (#kind? @p3 "int"))
