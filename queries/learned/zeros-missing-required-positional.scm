((call
  function: (_) @p1
  arguments: (_) @p2) @here
  (#api? @p1 "tl.zeros")
  (#eq? @p2 "()"))
