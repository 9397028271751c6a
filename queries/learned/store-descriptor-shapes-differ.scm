((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p4 .)) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "descriptor")
  (#shapes-differ? @p3 @p4))
