((call
  function: (_) @p1
  arguments: (argument_list
    . (call
      function: (_) @p4) @p3
    . (_) @p9 .)) @here
  (#api? @p1 "tl.dot")
  (#not-same-dtype? @p3 @p9)
  (#api? @p4 "tl.tensor.to")
  (#rank? @p9 "2"))
