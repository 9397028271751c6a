((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4
      . (_) @p5 .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#eq? @p4 "16")
  (#eq? @p5 "12"))
