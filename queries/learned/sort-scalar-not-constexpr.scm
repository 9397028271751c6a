((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "tl.sort")
  (#kind? @p3 "scalar")
  (#not-constexpr? @p3))
