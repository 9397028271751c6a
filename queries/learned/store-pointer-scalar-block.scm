((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4)) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#kind? @p4 "block"))
