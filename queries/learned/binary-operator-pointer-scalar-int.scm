((binary_operator
  left: (_) @p1
  operator: "%"
  right: (_) @p3) @here
  (#kind? @p1 "pointer")
  (#kind? @p1 "scalar")
  (#kind? @p3 "int"))
