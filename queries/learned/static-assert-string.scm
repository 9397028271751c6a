((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) .)) @here
  (#api? @p1 "tl.static_assert")
  (#kind? @p3 "string"))
