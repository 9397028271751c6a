((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p5
      value: (unary_operator
        operator: "-"
        argument: (_) @p8)))) @here
  (#api? @p1 "tl.sum")
  (#kind? @p3 "float")
  (#eq? @p5 "axis")
  (#eq? @p8 "3"))
