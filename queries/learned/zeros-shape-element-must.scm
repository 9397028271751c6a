((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4
      . (_) @p5 .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#any-of? @p4 "16" "48")
  (#any-of? @p5 "12" "2"))
