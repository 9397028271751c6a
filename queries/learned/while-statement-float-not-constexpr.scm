((while_statement
  condition: (_) @p1) @here
  (#kind? @p1 "float")
  (#not-constexpr? @p1))
