((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (_) @p6)
    . (identifier) @p7
    . (identifier) @p8
    . (_) @p9 .)) @here
  (#api? @p1 "tl.atomic_cas")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int")
  (#not-same-dtype? @p7 @p9)
  (#not-same-dtype? @p8 @p9))
