((if_statement
  condition: (identifier) @p1) @here
  (#kind? @p1 "block"))
