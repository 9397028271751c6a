((if_statement
  condition: (identifier) @p1) @here
  (#rank? @p1 "1"))
