((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (identifier) @p6) @p3
    (keyword_argument
      name: (_) @p8
      value: (_) @p9))) @here
  (#api? @p1 "tl.load")
  (#not-broadcast? @p3 @p9)
  (#kind? @p4 "pointer")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int")
  (#eq? @p8 "mask"))
