((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (tuple
      . (_)
      . (_) .) .)) @here
  (#api? @p1 "tl.device_print")
  (#kind? @p3 "string"))
