((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.trans")
  (#rank? @p3 "2")
  (#eq? @p4 "0"))
