((conditional_expression
  . (_) @p1
  . (_) @p2
  . (_) @p3 .) @here
  (#kind? @p1 "float")
  (#rank? @p1 "1")
  (#kind? @p2 "block")
  (#kind? @p3 "float")
  (#rank? @p3 "1"))
