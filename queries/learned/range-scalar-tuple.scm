((for_statement
  left: (_) @p1
  right: (call
    function: (_) @p3
    arguments: (argument_list
      . (_) @p5))) @here
  (#kind? @p1 "scalar")
  (#api? @p3 "builtins.range")
  (#kind? @p5 "tuple"))
