((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.histogram")
  (#kind? @p3 "float")
  (#rank? @p3 "1")
  (#eq? @p4 "16"))
