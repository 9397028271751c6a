((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p4 .)) @here
  (#api? @p1 "tl.multiple_of")
  (#not-constexpr? @p4))
