((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    (keyword_argument
      name: (_) @p6
      value: (_) @p7))) @here
  (#api? @p1 "tl.maximum")
  (#kind? @p3 "float")
  (#eq? @p4 "0.0")
  (#eq? @p6 "propagate_nan")
  (#kind? @p7 "string"))
