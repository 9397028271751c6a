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
      value: (identifier) @p10))) @here
  (#api? @p1 "tl.store")
  (#kind? @p4 "pointer")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int")
  (#kind? @p6 "block")
  (#eq? @p7 "1.0")
  (#eq? @p9 "mask")
  (#kind? @p10 "float")
  (#rank? @p10 "1"))
