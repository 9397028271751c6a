((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p7 .)) @here
  (#api? @p1 "tl.store")
  (#kind? @p7 "string"))
