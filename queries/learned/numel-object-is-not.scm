((call
  function: (_) @p1
  arguments: (_) @p4) @here
  (#api? @p1 "tl.tensor.numel")
  (#eq? @p4 "()"))
