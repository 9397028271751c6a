((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.dot")
  (#kind? @p3 "float")
  (#rank? @p3 "2")
  (#kind? @p4 "float")
  (#rank? @p4 "2")
  (#eq? @p9 "input_precision")
  (#kind? @p10 "bool"))
