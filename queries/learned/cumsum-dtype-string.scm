((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    (keyword_argument
      name: (_) @p8
      value: (_) @p9))) @here
  (#api? @p1 "tl.cumsum")
  (#eq? @p8 "dtype")
  (#kind? @p9 "string"))
