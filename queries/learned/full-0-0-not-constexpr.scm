((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4 .)
    . (_) @p5
    . (_) @p6 .)) @here
  (#api? @p1 "tl.full")
  (#not-constexpr? @p4)
  (#eq? @p5 "0.0")
  (#api? @p6 "tl.float32"))
