((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    . (identifier) @p4 .)) @here
  (#api? @p1 "tl.join")
  (#not-same-dtype? @p3 @p4)
  (#kind? @p4 "int"))
