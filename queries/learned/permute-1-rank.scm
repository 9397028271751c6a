((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (tuple
      . (_) @p5
      . (_) @p6 .) .)) @here
  (#api? @p1 "tl.permute")
  (#rank? @p3 "1")
  (#eq? @p5 "1")
  (#eq? @p6 "0"))
