((call
  function: (_) @p1
  arguments: (argument_list
    . (list
      . (_) @p4 .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#not-power-of-two? @p4))
