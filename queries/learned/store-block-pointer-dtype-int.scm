((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.store")
  (#kind? @p3 "block-pointer")
  (#dtype? @p3 "fp32")
  (#kind? @p4 "int")
  (#kind? @p4 "scalar"))
