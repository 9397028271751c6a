((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.where")
  (#kind? @p4 "float")
  (#not-broadcast? @p4 @p5))
