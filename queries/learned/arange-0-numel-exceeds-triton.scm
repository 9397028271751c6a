((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.arange")
  (#eq? @p3 "0")
  (#eq? @p4 "2097152"))
