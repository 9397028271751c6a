((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p10)) @here
  (#api? @p1 "tl.store")
  (#not-same-dtype? @p3 @p10)
  (#kind? @p10 "pointer"))
