((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    (keyword_argument
      name: (_) @p5
      value: (identifier) @p6))) @here
  (#api? @p1 "tl.sum")
  (#kind? @p3 "float")
  (#eq? @p5 "axis")
  (#not-constexpr? @p6))
