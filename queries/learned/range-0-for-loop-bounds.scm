((for_statement
  right: (call
    function: (_) @p3
    arguments: (argument_list
      . (_) @p5
      . (_)
      . (_) @p7))) @here
  (#api? @p3 "builtins.range")
  (#eq? @p5 "0")
  (#eq? @p7 "0.5"))
