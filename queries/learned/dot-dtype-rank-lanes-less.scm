((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.dot")
  (#dtype? @p3 "fp16")
  (#rank? @p3 "2")
  (#lanes-less? @p3 "16")
  (#dtype? @p4 "fp16")
  (#rank? @p4 "2")
  (#lanes-less? @p4 "16"))
