((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.join")
  (#kind? @p3 "float")
  (#not-same-dtype? @p3 @p4)
  (#kind? @p4 "float")
  (#kind? @p4 "block"))
