((call
  function: (_) @p1
  arguments: (_) @p2) @here
  (#api? @p1 "builtins.print")
  (#eq? @p2 "()"))
