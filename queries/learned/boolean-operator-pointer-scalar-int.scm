((boolean_operator
  left: (_) @p1
  operator: "and"
  right: (_) @p3) @here
  (#kind? @p1 "pointer")
  (#kind? @p1 "scalar")
  (#kind? @p3 "int")
  (#kind? @p3 "block"))
