((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p5
      value: (_) @p6))) @here
  (#api? @p1 "tl.min")
  (#kind? @p3 "float")
  (#rank? @p3 "1")
  (#eq? @p5 "axis")
  (#eq? @p6 "1"))
