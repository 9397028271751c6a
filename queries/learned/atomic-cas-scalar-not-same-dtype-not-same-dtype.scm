((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (_))
    . (identifier) @p7
    . (identifier) @p8
    . (_) @p9 .)) @here
  (#api? @p1 "tl.atomic_cas")
  (#kind? @p4 "scalar")
  (#not-same-dtype? @p7 @p9)
  (#not-same-dtype? @p8 @p9))
