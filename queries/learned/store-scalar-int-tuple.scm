((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (_) @p6)
    . (_) @p7 .)) @here
  (#api? @p1 "tl.store")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int")
  (#kind? @p7 "tuple"))
