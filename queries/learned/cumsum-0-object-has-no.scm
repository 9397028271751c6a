((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) .)) @here
  (#api? @p1 "tl.cumsum")
  (#eq? @p3 "0"))
