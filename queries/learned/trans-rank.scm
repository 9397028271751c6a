((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3 .)) @here
  (#api? @p1 "tl.trans")
  (#rank? @p3 "1"))
