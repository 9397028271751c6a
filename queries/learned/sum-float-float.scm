((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (identifier) @p4 .)) @here
  (#api? @p1 "tl.sum")
  (#kind? @p3 "float")
  (#kind? @p4 "float"))
