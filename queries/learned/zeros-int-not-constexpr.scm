((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4
      . (_) @p5 .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#kind? @p4 "int")
  (#not-constexpr? @p5))
