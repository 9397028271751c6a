((conditional_expression
  . (identifier) @p1
  . (_) @p2
  . (_) @p4 .) @here
  (#kind? @p1 "block")
  (#kind? @p2 "bool")
  (#eq? @p4 "0.0"))
