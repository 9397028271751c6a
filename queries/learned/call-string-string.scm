((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier)
    . (_) @p5
    . (_) .)) @here
  (#api? @p1 "builtins.print" "tl.device_print")
  (#kind? @p3 "string")
  (#kind? @p5 "string"))
