((call
  function: (attribute
    object: (_) @p2) @p1
  arguments: (argument_list
    . (_) @p5)) @here
  (#api? @p1 "tl.tensor.to")
  (#kind? @p2 "pointer")
  (#api? @p5 "tl.float32"))
