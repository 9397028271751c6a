((binary_operator
  left: (_)
  operator: "|"
  right: (_) @p3) @here
  (#kind? @p3 "float"))
