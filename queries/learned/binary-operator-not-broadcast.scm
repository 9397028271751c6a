((binary_operator
  left: (_) @p1
  right: (_) @p3) @here
  (#not-broadcast? @p1 @p3))
