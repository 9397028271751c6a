((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p5
      value: (_) @p6))) @here
  (#api? @p1 "tl.sum")
  (#dtype? @p3 "fp32")
  (#rank? @p3 "2")
  (#eq? @p5 "axis")
  (#eq? @p6 "3"))
