((conditional_expression
  . (_) @p1
  . (_) @p2
  . (_) @p3 .) @here
  (#dtype? @p1 "fp32")
  (#rank? @p1 "1")
  (#kind? @p2 "block")
  (#dtype? @p3 "fp32")
  (#rank? @p3 "1"))
