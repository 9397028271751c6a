((binary_operator
  left: (_) @p1
  operator: "**"
  right: (identifier) @p3) @here
  (#eq? @p1 "2")
  (#kind? @p3 "float"))
