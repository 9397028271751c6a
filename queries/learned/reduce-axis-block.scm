((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    (keyword_argument
      name: (_) @p5
      value: (_) @p6)
    (keyword_argument
      name: (_) @p8
      value: (_) @p9))) @here
  (#api? @p1 "tl.reduce")
  (#kind? @p3 "block")
  (#eq? @p5 "axis")
  (#eq? @p6 "0")
  (#eq? @p8 "combine_fn")
  (#api? @p9 "tl.maximum"))
