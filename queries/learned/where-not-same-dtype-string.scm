((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.where")
  (#not-same-dtype? @p3 @p4)
  (#kind? @p5 "string"))
