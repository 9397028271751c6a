((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (identifier) @p4
      . (_) @p5 .)
    . (_) @p6
    . (_) @p7 .)) @here
  (#api? @p1 "tl.associative_scan" "tl.reduce")
  (#rank? @p4 "1")
  (#kind? @p5 "int")
  (#rank? @p5 "1")
  (#eq? @p6 "0")
  (#api? @p7 "tl.standard._sum_combine"))
