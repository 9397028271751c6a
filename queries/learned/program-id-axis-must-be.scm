((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "tl.program_id")
  (#any-of? @p3 "0.5" "1.5"))
