((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (call
      function: (_) @p5)
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.dot")
  (#kind? @p3 "float")
  (#rank? @p3 "2")
  (#api? @p5 "tl.trans")
  (#eq? @p9 "out_dtype")
  (#kind? @p10 "string"))
