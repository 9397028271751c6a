((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.clamp")
  (#kind? @p3 "int")
  (#eq? @p4 "0")
  (#eq? @p5 "1"))
