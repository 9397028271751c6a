((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p4 .)) @here
  (#api? @p1 "tl.cast")
  (#kind? @p4 "string"))
