((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p5
    . (_) @p6 .)) @here
  (#api? @p1 "tl.full")
  (#kind? @p3 "tuple")
  (#kind? @p5 "block")
  (#api? @p6 "tl.float32"))
