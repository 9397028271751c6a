((binary_operator
  left: (identifier) @p1
  operator: "//"
  right: (identifier) @p3) @here
  (#kind? @p1 "float")
  (#dtype? @p3 "fp32"))
