((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.max")
  (#kind? @p3 "float")
  (#kind? @p3 "block")
  (#kind? @p4 "float")
  (#kind? @p4 "scalar")
  (#constexpr? @p4))
