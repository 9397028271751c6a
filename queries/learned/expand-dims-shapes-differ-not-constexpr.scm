((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.expand_dims")
  (#shapes-differ? @p3 @p4)
  (#not-constexpr? @p4))
