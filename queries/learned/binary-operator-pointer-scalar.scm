((binary_operator
  left: (_) @p1
  operator: "//"
  right: (_)) @here
  (#kind? @p1 "pointer")
  (#kind? @p1 "scalar"))
