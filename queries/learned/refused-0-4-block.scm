((subscript
  value: (_) @p1
  subscript: (slice
    . (_) @p3
    . (_) @p4 .)) @here
  (#kind? @p1 "block")
  (#eq? @p3 "0")
  (#eq? @p4 "4"))
