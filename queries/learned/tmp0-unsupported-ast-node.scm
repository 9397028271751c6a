((global_statement
  . (_) @p1 .) @here
  (#eq? @p1 "tmp0"))
