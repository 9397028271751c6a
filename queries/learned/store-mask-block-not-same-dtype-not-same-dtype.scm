((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p7
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "block")
  (#not-same-dtype? @p3 @p7)
  (#not-same-dtype? @p3 @p10)
  (#not-same-dtype? @p7 @p10)
  (#eq? @p9 "mask")
  (#kind? @p10 "int"))
