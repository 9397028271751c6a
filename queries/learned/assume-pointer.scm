((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "tl.assume")
  (#kind? @p3 "pointer"))
