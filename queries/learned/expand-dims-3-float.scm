((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.expand_dims")
  (#kind? @p3 "float")
  (#eq? @p4 "3"))
