((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (tuple
      . (_) @p5 .) .)) @here
  (#api? @p1 "tl.reshape")
  (#not-constexpr? @p5))
