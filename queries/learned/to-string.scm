((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p8 .)) @here
  (#api? @p1 "tl.tensor.to")
  (#kind? @p8 "string"))
