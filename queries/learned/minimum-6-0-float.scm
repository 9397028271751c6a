((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.minimum")
  (#kind? @p3 "float")
  (#eq? @p4 "6.0")
  (#eq? @p5 "1.0"))
