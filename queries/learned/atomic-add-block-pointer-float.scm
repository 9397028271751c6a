((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.atomic_add")
  (#kind? @p3 "block-pointer")
  (#kind? @p4 "float"))
