((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "builtins.print" "tl.device_print")
  (#not-constexpr? @p3))
