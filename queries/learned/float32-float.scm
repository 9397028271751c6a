((binary_operator
  left: (identifier) @p1
  operator: "*"
  right: (_) @p3) @here
  (#kind? @p1 "float")
  (#api? @p3 "tl.float32"))
