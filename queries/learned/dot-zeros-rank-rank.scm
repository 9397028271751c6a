((call
  function: (_) @p1
  arguments: (argument_list
    . (call
      function: (_) @p4) @p3
    . (call
      function: (_) @p11) @p10 .)) @here
  (#api? @p1 "tl.dot")
  (#rank? @p3 "2")
  (#api? @p4 "tl.zeros")
  (#rank? @p10 "2")
  (#api? @p11 "tl.zeros"))
