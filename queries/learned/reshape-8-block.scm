((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (tuple
      . (_) @p5
      . (unary_operator
        operator: "-"
        argument: (_) @p8) .) .)) @here
  (#api? @p1 "tl.reshape")
  (#kind? @p3 "block")
  (#eq? @p5 "8")
  (#eq? @p8 "1"))
