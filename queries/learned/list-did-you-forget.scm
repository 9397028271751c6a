((call
  function: (_) @p1
  arguments: (argument_list
    . (_) .)) @here
  (#api? @p1 "builtins.list"))
