((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (tuple
      . (_) @p5 .)
    . (tuple
      . (_) @p7 .)
    . (tuple
      . (_) @p9 .)
    . (tuple
      . (_) @p11 .)
    . (tuple
      . (_) @p13 .) .)) @here
  (#api? @p1 "tl.make_block_ptr")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#kind? @p5 "int")
  (#kind? @p5 "scalar")
  (#eq? @p7 "1")
  (#eq? @p9 "0")
  (#not-constexpr? @p11)
  (#eq? @p13 "0"))
