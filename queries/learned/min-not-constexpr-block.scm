((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.min")
  (#not-constexpr? @p3)
  (#kind? @p4 "block"))
