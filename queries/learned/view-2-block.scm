((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (tuple
      . (_) @p5 .) .)) @here
  (#api? @p1 "tl.view")
  (#kind? @p3 "block")
  (#eq? @p5 "2"))
