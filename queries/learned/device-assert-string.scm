((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (comparison_operator
      operators: ">") .)) @here
  (#api? @p1 "tl.device_assert")
  (#kind? @p3 "string"))
