((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p11 .)) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "pointer")
  (#not-broadcast? @p3 @p11))
