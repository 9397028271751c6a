((for_statement
  right: (call
    function: (_) @p3
    arguments: (argument_list
      . (_) @p5 .))) @here
  (#api? @p3 "tl.static_range")
  (#not-constexpr? @p5))
