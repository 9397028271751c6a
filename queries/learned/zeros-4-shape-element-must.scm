((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (unary_operator
        operator: "-"
        argument: (_) @p6) .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#eq? @p6 "4"))
