((for_statement
  right: (call
    function: (_) @p3
    arguments: (argument_list
      . (_) @p5
      . (_) @p6
      . (_) @p7))) @here
  (#api? @p3 "builtins.range")
  (#eq? @p5 "0")
  (#kind? @p6 "int")
  (#eq? @p7 "0.5"))
