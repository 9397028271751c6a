((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (identifier) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.gather")
  (#kind? @p4 "float")
  (#eq? @p5 "0"))
