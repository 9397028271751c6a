((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (unary_operator
      operator: "-"
      argument: (_) @p6) .)) @here
  (#api? @p1 "tl.expand_dims")
  (#kind? @p3 "float")
  (#eq? @p6 "4"))
