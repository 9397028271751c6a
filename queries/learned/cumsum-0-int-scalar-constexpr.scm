((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.cumsum")
  (#eq? @p3 "0")
  (#kind? @p4 "int")
  (#kind? @p4 "scalar")
  (#constexpr? @p4))
