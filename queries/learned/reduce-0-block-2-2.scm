((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.reduce")
  (#kind? @p3 "block")
  (#eq? @p4 "0")
  (#api? @p5 "tl.standard._argmax_combine_tie_break_left"))
