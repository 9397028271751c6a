((subscript
  value: (_) @p1
  subscript: (_) @p2) @here
  (#not-constexpr? @p1)
  (#eq? @p2 "0"))
