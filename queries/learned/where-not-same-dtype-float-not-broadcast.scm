((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.where")
  (#not-same-dtype? @p3 @p4)
  (#kind? @p4 "float")
  (#not-broadcast? @p4 @p5))
