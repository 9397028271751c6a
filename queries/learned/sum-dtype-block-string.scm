((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p8
      value: (_) @p9))) @here
  (#api? @p1 "tl.sum")
  (#kind? @p3 "block")
  (#eq? @p8 "dtype")
  (#kind? @p9 "string"))
