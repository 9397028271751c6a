((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "tl.num_programs")
  (#any-of? @p3 "100" "3" "5"))
