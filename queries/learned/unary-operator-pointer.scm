((unary_operator
  operator: "~"
  argument: (_) @p2) @here
  (#kind? @p2 "pointer"))
