((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    (keyword_argument
      name: (_) @p6
      value: (identifier) @p7))) @here
  (#api? @p1 "tl.histogram")
  (#kind? @p3 "int")
  (#rank? @p3 "1")
  (#eq? @p4 "16")
  (#eq? @p6 "mask")
  (#kind? @p7 "float")
  (#rank? @p7 "1"))
