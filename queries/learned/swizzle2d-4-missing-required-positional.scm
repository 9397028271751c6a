((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_)
    . (_) @p5
    . (_) @p6 .)) @here
  (#api? @p1 "tl.swizzle2d")
  (#eq? @p5 "4")
  (#eq? @p6 "4"))
