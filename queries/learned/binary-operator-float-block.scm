((binary_operator
  left: (_) @p1
  operator: "+"
  right: (list)) @here
  (#kind? @p1 "float")
  (#kind? @p1 "block"))
