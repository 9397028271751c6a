((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (tuple
      . (_) @p5 .) .)) @here
  (#api? @p1 "tl.advance")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#kind? @p5 "int")
  (#kind? @p5 "scalar"))
