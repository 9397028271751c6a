((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (identifier) @p4 .)) @here
  (#api? @p1 "tl.advance")
  (#kind? @p4 "int")
  (#kind? @p4 "scalar")
  (#constexpr? @p4))
