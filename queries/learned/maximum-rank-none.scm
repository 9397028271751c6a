((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.maximum")
  (#rank? @p3 "1")
  (#kind? @p4 "none"))
