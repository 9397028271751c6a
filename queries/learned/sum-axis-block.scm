((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p5
      value: (_) @p6))) @here
  (#api? @p1 "tl.sum")
  (#kind? @p3 "block")
  (#eq? @p5 "axis")
  (#any-of? @p6 "0.0" "0.5"))
