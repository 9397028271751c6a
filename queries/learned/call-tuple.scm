((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "tl.sigmoid" "tl.sum")
  (#kind? @p3 "tuple"))
