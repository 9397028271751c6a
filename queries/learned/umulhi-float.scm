((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p4)) @here
  (#api? @p1 "tl.umulhi")
  (#kind? @p4 "float"))
