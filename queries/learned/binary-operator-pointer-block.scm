((binary_operator
  left: (_) @p1
  operator: "<<"
  right: (_) @p6) @here
  (#kind? @p1 "pointer")
  (#kind? @p6 "block"))
