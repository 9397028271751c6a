((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    (keyword_argument
      value: (_) @p7))) @here
  (#api? @p1 "builtins.print")
  (#eq? @p7 "\"\""))
