((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.arange")
  (#eq? @p3 "1")
  (#eq? @p4 "1"))
