((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    . (_) .)) @here
  (#api? @p1 "tl.load")
  (#kind? @p3 "pointer")
  (#kind? @p3 "scalar")
  (#kind? @p4 "block"))
