((for_statement
  left: (identifier)
  right: (call
    function: (_) @p3)) @here
  (#api? @p3 "builtins.list" "tl.abs"))
