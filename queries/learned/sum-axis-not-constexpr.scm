((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier)
    (keyword_argument
      name: (_) @p5
      value: (identifier) @p6))) @here
  (#api? @p1 "tl.sum")
  (#eq? @p5 "axis")
  (#not-constexpr? @p6))
