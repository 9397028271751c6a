((assignment
  right: (_) @p2) @here
  (#kind? @p2 "string"))
