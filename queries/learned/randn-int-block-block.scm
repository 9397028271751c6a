((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (identifier) @p4
    . (identifier) @p5 .)) @here
  (#api? @p1 "tl.randn")
  (#kind? @p4 "int")
  (#kind? @p4 "block")
  (#kind? @p5 "block"))
