((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3)) @here
  (#api? @p1 "tl.exp2")
  (#kind? @p3 "int")
  (#kind? @p3 "block"))
