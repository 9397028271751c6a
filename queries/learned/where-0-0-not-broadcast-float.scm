((call
  function: (_) @p1
  arguments: (argument_list
    . (comparison_operator
      operators: "<") @p3
    . (_) @p5
    . (_) @p6 .)) @here
  (#api? @p1 "tl.where")
  (#not-broadcast? @p3 @p5)
  (#kind? @p5 "float")
  (#eq? @p6 "0.0"))
