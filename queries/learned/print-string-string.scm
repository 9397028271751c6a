((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "builtins.print")
  (#kind? @p3 "string")
  (#kind? @p4 "string"))
