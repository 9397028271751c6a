((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    (keyword_argument
      name: (_) @p6
      value: (_) @p7))) @here
  (#api? @p1 "tl.zeros")
  (#eq? @p6 "dtype")
  (#api? @p7 "builtins.float"))
