((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4 .)
    . (_) @p5 .)) @here
  (#api? @p1 "tl.zeros")
  (#eq? @p4 "2.0")
  (#api? @p5 "tl.float32"))
