((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p7
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "pointer")
  (#kind? @p3 "block")
  (#rank? @p7 "1")
  (#not-same-dtype? @p7 @p10)
  (#eq? @p9 "mask")
  (#kind? @p10 "int")
  (#rank? @p10 "1"))
