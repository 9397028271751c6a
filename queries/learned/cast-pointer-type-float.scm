((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (call
      function: (_) @p5
      arguments: (argument_list
        . (_) @p7 .)) .)) @here
  (#api? @p1 "tl.cast")
  (#kind? @p3 "float")
  (#api? @p5 "tl.pointer_type")
  (#api? @p7 "tl.float32"))
