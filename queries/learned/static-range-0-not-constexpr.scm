((for_statement
  right: (call
    function: (_) @p3
    arguments: (argument_list
      . (_) @p5
      . (_) @p6))) @here
  (#api? @p3 "tl.static_range")
  (#eq? @p5 "0")
  (#not-constexpr? @p6))
