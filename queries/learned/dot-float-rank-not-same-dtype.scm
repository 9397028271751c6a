((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p9 .)) @here
  (#api? @p1 "tl.dot")
  (#kind? @p3 "float")
  (#rank? @p3 "2")
  (#not-same-dtype? @p3 @p9)
  (#dtype? @p9 "fp16")
  (#rank? @p9 "2"))
