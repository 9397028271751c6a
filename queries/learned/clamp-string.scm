((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (_)
    . (_) @p5 .)) @here
  (#api? @p1 "tl.clamp")
  (#kind? @p5 "string"))
