((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4
    . (_) @p5 .)) @here
  (#api? @p1 "tl.atomic_cas")
  (#kind? @p3 "pointer")
  (#eq? @p4 "0.0")
  (#eq? @p5 "1"))
