((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (tuple
      . (_) @p5 .) .)) @here
  (#api? @p1 "tl.reshape")
  (#not-power-of-two? @p5))
