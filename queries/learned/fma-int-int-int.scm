((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.fma")
  (#kind? @p3 "int")
  (#kind? @p4 "int")
  (#kind? @p5 "int"))
