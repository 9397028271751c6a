((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3)) @here
  (#api? @p1 "tl.sqrt")
  (#kind? @p3 "block")
  (#dtype? @p3 "bf16"))
