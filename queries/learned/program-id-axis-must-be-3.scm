((call
  function: (_) @p1
  arguments: (argument_list
    . (unary_operator
      operator: "-"
      argument: (_) @p5) .)) @here
  (#api? @p1 "tl.program_id")
  (#any-of? @p5 "1" "2"))
