((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    . (_) @p4 .)) @here
  (#api? @p1 "tl.expand_dims")
  (#eq? @p4 "3"))
