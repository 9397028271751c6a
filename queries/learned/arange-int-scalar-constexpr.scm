((call
  function: (_) @p1
  arguments: (argument_list
    . (unary_operator
      operator: "-"
      argument: (_) @p5)
    . (_) @p6 .)) @here
  (#api? @p1 "tl.arange")
  (#any-of? @p5 "1" "2")
  (#kind? @p6 "int")
  (#kind? @p6 "scalar")
  (#constexpr? @p6))
