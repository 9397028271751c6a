((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_)
      . (_) @p5 .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#not-constexpr? @p5))
