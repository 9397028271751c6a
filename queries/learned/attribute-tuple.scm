((attribute
  object: (_) @p1) @here
  (#kind? @p1 "tuple"))
