((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (_) @p4 .)) @here
  (#api? @p1 "tl.max_contiguous")
  (#not-constexpr? @p4))
