((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p7
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.atomic_add")
  (#kind? @p3 "pointer")
  (#rank? @p3 "1")
  (#rank? @p7 "1")
  (#not-same-dtype? @p7 @p10)
  (#eq? @p9 "mask")
  (#kind? @p10 "int"))
