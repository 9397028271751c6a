((call
  function: (_) @p1
  arguments: (argument_list
    . (call
      function: (_) @p4) @p3)) @here
  (#api? @p1 "tl.log")
  (#dtype? @p3 "fp16")
  (#api? @p4 "tl.tensor.to"))
