((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p6
      value: (identifier) @p7))) @here
  (#api? @p1 "tl.zeros")
  (#kind? @p3 "tuple")
  (#eq? @p6 "dtype")
  (#kind? @p7 "float")
  (#kind? @p7 "block"))
