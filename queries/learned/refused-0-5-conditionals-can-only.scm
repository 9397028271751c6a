((if_statement
  condition: (_) @p1) @here
  (#eq? @p1 "0.5"))
