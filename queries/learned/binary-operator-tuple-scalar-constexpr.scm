((binary_operator
  left: (_) @p1
  operator: "+"
  right: (_) @p3) @here
  (#kind? @p1 "tuple")
  (#kind? @p3 "scalar")
  (#constexpr? @p3))
