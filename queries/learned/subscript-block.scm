((subscript
  value: (_) @p1
  subscript: (slice
    . (_) .)) @here
  (#kind? @p1 "block"))
