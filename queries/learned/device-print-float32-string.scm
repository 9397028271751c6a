((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.device_print")
  (#kind? @p3 "string")
  (#api? @p4 "tl.float32"))
