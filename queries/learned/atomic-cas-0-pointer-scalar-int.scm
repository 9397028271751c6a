((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (identifier) @p6)
    . (_) @p7
    . (_) @p8 .)) @here
  (#api? @p1 "tl.atomic_cas")
  (#kind? @p4 "pointer")
  (#kind? @p4 "scalar")
  (#kind? @p6 "int")
  (#kind? @p6 "block")
  (#eq? @p7 "0")
  (#eq? @p8 "1"))
