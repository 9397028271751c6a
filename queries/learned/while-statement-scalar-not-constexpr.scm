((while_statement
  condition: (_) @p1
  alternative: (_)) @here
  (#kind? @p1 "scalar")
  (#not-constexpr? @p1))
