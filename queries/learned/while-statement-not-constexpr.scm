((while_statement
  condition: (_) @p1
  alternative: (_)) @here
  (#not-constexpr? @p1))
