((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p7
    . (identifier) @p8 .)) @here
  (#api? @p1 "tl.atomic_cas")
  (#kind? @p3 "pointer")
  (#not-same-dtype? @p7 @p8))
