((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (call
      function: (_) @p11) @p10 .)) @here
  (#api? @p1 "tl.dot")
  (#rank? @p3 "2")
  (#rank? @p10 "2")
  (#api? @p11 "tl.zeros"))
