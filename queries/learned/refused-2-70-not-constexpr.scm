((binary_operator
  left: (_) @p1
  right: (binary_operator
    left: (_) @p4
    operator: "**"
    right: (_) @p6)) @here
  (#not-constexpr? @p1)
  (#eq? @p4 "2")
  (#eq? @p6 "70"))
