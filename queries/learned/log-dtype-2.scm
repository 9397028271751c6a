((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3)) @here
  (#api? @p1 "tl.log")
  (#dtype? @p3 "fp16"))
