((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p7)) @here
  (#api? @p1 "tl.exp")
  (#not-same-dtype? @p3 @p7))
