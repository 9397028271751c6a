((call
  function: (_) @p1
  arguments: (argument_list
    . (call
      function: (_) @p4) @p3)) @here
  (#api? @p1 "tl.sqrt")
  (#dtype? @p3 "bf16")
  (#api? @p4 "tl.abs" "tl.tensor.to"))
