((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p7 .)) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "pointer")
  (#rank? @p3 "1")
  (#kind? @p7 "string"))
