((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3)) @here
  (#api? @p1 "tl.rsqrt")
  (#kind? @p3 "int")
  (#kind? @p3 "block"))
