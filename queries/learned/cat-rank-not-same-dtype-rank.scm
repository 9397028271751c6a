((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (identifier) @p4
    (_))) @here
  (#api? @p1 "tl.cat")
  (#rank? @p3 "1")
  (#not-same-dtype? @p3 @p4)
  (#rank? @p4 "1"))
