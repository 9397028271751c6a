((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.topk")
  (#kind? @p3 "block")
  (#not-constexpr? @p4))
