((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (tuple
      . (_) @p5 .) .)) @here
  (#api? @p1 "tl.reshape")
  (#kind? @p3 "block")
  (#not-constexpr? @p5))
