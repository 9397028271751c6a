((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3)) @here
  (#api? @p1 "tl.exp")
  (#kind? @p3 "int")
  (#not-constexpr? @p3))
