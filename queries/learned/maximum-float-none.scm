((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.maximum")
  (#kind? @p3 "float")
  (#kind? @p4 "none"))
