((for_statement
  right: (call
    function: (_) @p3
    arguments: (argument_list
      . (_) @p5 .))) @here
  (#api? @p3 "builtins.range")
  (#kind? @p5 "int")
  (#kind? @p5 "block"))
