((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p4
    . (_) @p5
    . (_) @p6
    . (_)
    . (_) @p8 .)) @here
  (#api? @p1 "tl.make_block_ptr")
  (#kind? @p4 "int")
  (#kind? @p4 "scalar")
  (#eq? @p5 "1")
  (#eq? @p6 "0")
  (#eq? @p8 "0"))
