((conditional_expression
  . (_) @p1
  . (comparison_operator
    operators: ">")
  . (_) .) @here
  (#kind? @p1 "string"))
