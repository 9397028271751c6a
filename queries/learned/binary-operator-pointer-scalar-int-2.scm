((binary_operator
  left: (_) @p1
  operator: "<<"
  right: (binary_operator
    left: (_) @p7
    operator: "+"
    right: (identifier) @p9)) @here
  (#kind? @p1 "pointer")
  (#kind? @p7 "scalar")
  (#kind? @p9 "int"))
