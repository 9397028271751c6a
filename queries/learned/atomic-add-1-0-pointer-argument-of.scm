((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p4 .)) @here
  (#api? @p1 "tl.atomic_add")
  (#eq? @p4 "1.0"))
