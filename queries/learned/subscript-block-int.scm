((subscript
  value: (_) @p1
  subscript: (slice
    . (_) @p3 .)) @here
  (#kind? @p1 "block")
  (#kind? @p3 "int"))
