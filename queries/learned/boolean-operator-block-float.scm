((boolean_operator
  left: (identifier) @p1
  operator: "and"
  right: (identifier) @p3) @here
  (#kind? @p1 "block")
  (#kind? @p3 "float"))
