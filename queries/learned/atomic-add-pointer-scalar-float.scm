((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p4 .)) @here
  (#api? @p1 "tl.atomic_add")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#kind? @p4 "float")
  (#kind? @p4 "block"))
