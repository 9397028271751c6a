((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (_) @p6) @p3
    . (identifier) @p7
    . (_) @p8 .)) @here
  (#api? @p1 "tl.atomic_add")
  (#not-same-dtype? @p3 @p7)
  (#kind? @p4 "pointer")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int")
  (#kind? @p6 "block")
  (#kind? @p8 "string"))
