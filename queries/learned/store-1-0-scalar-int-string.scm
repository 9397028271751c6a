((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (identifier) @p6)
    . (_) @p7
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.store")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int")
  (#eq? @p7 "1.0")
  (#eq? @p9 "cache_modifier")
  (#kind? @p10 "string"))
