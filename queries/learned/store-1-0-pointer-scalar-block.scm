((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    (keyword_argument
      name: (_) @p6
      value: (_) @p7))) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#eq? @p4 "1.0")
  (#eq? @p6 "mask")
  (#kind? @p7 "block"))
