((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3)) @here
  (#api? @p1 "tl.cumsum" "tl.sum")
  (#kind? @p3 "pointer")
  (#kind? @p3 "block"))
