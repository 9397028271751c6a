((subscript
  value: (identifier) @p1
  subscript: (_) @p2) @here
  (#kind? @p1 "float")
  (#kind? @p2 "int")
  (#kind? @p2 "scalar")
  (#constexpr? @p2))
