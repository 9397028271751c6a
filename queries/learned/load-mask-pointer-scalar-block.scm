((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p5
      value: (_) @p6))) @here
  (#api? @p1 "tl.load")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#eq? @p5 "mask")
  (#kind? @p6 "block"))
