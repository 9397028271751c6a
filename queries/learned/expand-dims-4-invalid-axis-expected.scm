((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (unary_operator
      operator: "-"
      argument: (_) @p6) .)) @here
  (#api? @p1 "tl.expand_dims")
  (#eq? @p6 "4"))
