((binary_operator
  left: (_) @p1
  operator: "+"
  right: (_) @p3) @here
  (#kind? @p1 "descriptor")
  (#eq? @p3 "1"))
