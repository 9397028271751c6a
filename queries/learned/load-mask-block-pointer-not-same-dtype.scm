((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p5
      value: (_) @p6))) @here
  (#api? @p1 "tl.load")
  (#kind? @p3 "block-pointer")
  (#not-same-dtype? @p3 @p6)
  (#eq? @p5 "mask"))
