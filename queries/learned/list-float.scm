((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "builtins.list")
  (#kind? @p3 "float"))
