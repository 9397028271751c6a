((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (tuple
      . (_) @p5 .) .)) @here
  (#api? @p1 "tl.broadcast_to")
  (#rank? @p3 "1")
  (#eq? @p5 "2"))
