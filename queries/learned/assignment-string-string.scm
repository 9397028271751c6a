((assignment
  right: (binary_operator
    left: (_) @p3
    operator: "+"
    right: (_) @p5)) @here
  (#kind? @p3 "string")
  (#kind? @p5 "string"))
