((binary_operator
  left: (_) @p1
  operator: "**"
  right: (_) @p3) @here
  (#eq? @p1 "2")
  (#eq? @p3 "70"))
