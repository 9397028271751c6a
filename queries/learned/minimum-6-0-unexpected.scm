((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.minimum")
  (#eq? @p4 "6.0")
  (#eq? @p5 "1.0"))
