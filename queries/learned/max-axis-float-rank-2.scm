((call
  function: (_) @p1
  arguments: (argument_list
    . (identifier) @p3
    (keyword_argument
      name: (_) @p5
      value: (unary_operator
        operator: "-"
        argument: (_) @p8)))) @here
  (#api? @p1 "tl.max")
  (#kind? @p3 "float")
  (#rank? @p3 "1")
  (#eq? @p5 "axis")
  (#eq? @p8 "2"))
