((function_definition
  name: (_) @p1) @here
  (#eq? @p1 "inner"))
