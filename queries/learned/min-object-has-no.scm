((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3)) @here
  (#api? @p1 "tl.min")
  (#any-of? @p3 "0" "1"))
