((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (_) @p6)
    . (tuple
      . (_)
      . (_) .) .)) @here
  (#api? @p1 "tl.store")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int"))
