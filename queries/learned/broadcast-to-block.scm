((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "tl.broadcast_to")
  (#kind? @p3 "block"))
