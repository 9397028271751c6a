((conditional_expression
  . (identifier) @p1
  . (_)
  . (_) @p4 .) @here
  (#kind? @p1 "block")
  (#kind? @p4 "float")
  (#eq? @p4 "0.0"))
