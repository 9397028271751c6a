((call
  function: (attribute
    object: (identifier) @p2) @p1
  arguments: (argument_list
    . (call
      function: (_) @p6
      arguments: (argument_list
        . (_) @p8 .)) .)) @here
  (#api? @p1 "tl.tensor.to")
  (#dtype? @p2 "i32")
  (#api? @p6 "tl.pointer_type")
  (#api? @p8 "tl.float32"))
