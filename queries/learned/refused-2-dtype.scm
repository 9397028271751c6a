((binary_operator
  left: (_) @p1
  operator: "//"
  right: (_) @p3) @here
  (#dtype? @p1 "fp32")
  (#eq? @p3 "2"))
