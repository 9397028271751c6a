((attribute
  object: (_) @p1) @p0 @here
  (#api? @p0 "tl.tensor.T")
  (#rank? @p1 "1"))
