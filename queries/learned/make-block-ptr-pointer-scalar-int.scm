((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (tuple
      . (_) @p5
      . (_) @p6 .)
    . (_) @p7
    . (_) @p9
    . (_) @p11
    . (_) @p13 .)) @here
  (#api? @p1 "tl.make_block_ptr")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#kind? @p5 "int")
  (#kind? @p5 "scalar")
  (#kind? @p6 "int")
  (#kind? @p6 "scalar")
  (#kind? @p7 "tuple")
  (#kind? @p9 "tuple")
  (#kind? @p11 "tuple")
  (#kind? @p13 "tuple"))
