((comparison_operator
  operators: _ @p1) @here
  (#any-of? @p1 "in" "not in"))
