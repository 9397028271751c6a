((binary_operator
  left: (identifier) @p1
  operator: "**"
  right: (_) @p3) @here
  (#kind? @p1 "float")
  (#any-of? @p3 "0.5" "2.0"))
