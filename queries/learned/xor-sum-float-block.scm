((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3)) @here
  (#api? @p1 "tl.xor_sum")
  (#kind? @p3 "float")
  (#kind? @p3 "block"))
