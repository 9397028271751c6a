((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#kind? @p3 "int")
  (#kind? @p3 "scalar")
  (#constexpr? @p3))
