((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p4 .)) @here
  (#api? @p1 "tl.arange")
  (#eq? @p3 "0")
  (#not-power-of-two? @p4))
