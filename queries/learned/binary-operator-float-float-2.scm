((binary_operator
  left: (identifier) @p1
  operator: "//"
  right: (identifier) @p3) @here
  (#kind? @p1 "float")
  (#kind? @p3 "float"))
