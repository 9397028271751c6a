((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4 .)
    . (_) @p5
    . (_) @p6 .)) @here
  (#api? @p1 "tl.full")
  (#kind? @p4 "int")
  (#kind? @p4 "scalar")
  (#constexpr? @p4)
  (#kind? @p5 "string")
  (#api? @p6 "tl.float32"))
