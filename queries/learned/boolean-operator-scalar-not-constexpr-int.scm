((boolean_operator
  left: (_) @p1
  operator: "and"
  right: (_) @p3) @here
  (#kind? @p1 "scalar")
  (#not-constexpr? @p1)
  (#kind? @p3 "int")
  (#kind? @p3 "block"))
