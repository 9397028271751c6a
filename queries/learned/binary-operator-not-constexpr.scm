((binary_operator
  left: (_) @p1
  operator: "//"
  right: (_) @p3) @here
  (#not-constexpr? @p1)
  (#any-of? @p3 "127.0" "2.0"))
