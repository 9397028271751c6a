((for_statement
  right: (call
    function: (_) @p3
    arguments: (_) @p4)) @here
  (#api? @p3 "builtins.range")
  (#eq? @p4 "()"))
