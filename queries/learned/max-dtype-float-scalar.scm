((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.max")
  (#dtype? @p3 "fp32")
  (#kind? @p4 "float")
  (#kind? @p4 "scalar"))
