((not_operator
  argument: (_) @p1) @here
  (#kind? @p1 "float")
  (#kind? @p1 "block"))
