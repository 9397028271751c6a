((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (identifier) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.gather")
  (#kind? @p3 "block")
  (#kind? @p4 "float")
  (#kind? @p4 "block")
  (#eq? @p5 "0"))
