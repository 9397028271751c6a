((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (_) @p6)
    . (_) @p7
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.atomic_add")
  (#kind? @p4 "pointer")
  (#kind? @p6 "int")
  (#eq? @p7 "1")
  (#eq? @p9 "sem")
  (#kind? @p10 "string"))
