((call
  function: (_) @p1
  arguments: (argument_list
    . (unary_operator
      operator: "-"
      argument: (_) @p7) .)) @here
  (#api? @p1 "tl.tensor.view")
  (#eq? @p7 "1"))
