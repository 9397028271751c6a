((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4 .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#not-constexpr? @p4))
