((binary_operator
  left: (_) @p1
  operator: "+"
  right: (_) @p7) @here
  (#kind? @p1 "dtype")
  (#dtype? @p7 "i32"))
