((binary_operator
  left: (_) @p1
  operator: ">>"
  right: (_) @p3) @here
  (#kind? @p1 "float")
  (#rank? @p1 "1")
  (#eq? @p3 "1"))
