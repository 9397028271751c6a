((binary_operator
  left: (_) @p1
  operator: "**"
  right: (_) @p3) @here
  (#not-constexpr? @p1)
  (#eq? @p3 "2"))
