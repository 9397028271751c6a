((call
  function: (attribute
    object: (_) @p2) @p1
  arguments: (_) @p9) @here
  (#api? @p1 "tl.tensor.trans")
  (#rank? @p2 "1")
  (#eq? @p9 "()"))
