((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (tuple
      . (_) @p5
      . (unary_operator
        operator: "-"
        argument: (_) @p8) .) .)) @here
  (#api? @p1 "tl.reshape")
  (#eq? @p5 "8")
  (#eq? @p8 "1"))
