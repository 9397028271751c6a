((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4 .)
    . (_) @p5 .)) @here
  (#api? @p1 "tl.zeros")
  (#kind? @p4 "string")
  (#api? @p5 "tl.float32"))
