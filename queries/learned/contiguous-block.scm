((attribute
  object: (_) @p1) @p0 @here
  (#api? @p0 "tl.tensor.contiguous")
  (#kind? @p1 "block"))
