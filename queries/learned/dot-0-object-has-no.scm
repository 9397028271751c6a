((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) .)) @here
  (#api? @p1 "tl.dot")
  (#eq? @p3 "0"))
