((while_statement
  condition: (comparison_operator
    operators: ">") @p1) @here
  (#kind? @p1 "block"))
