((attribute
  object: (_) @p1) @p0 @here
  (#api? @p0 "tl.tensor.transpose")
  (#rank? @p1 "1"))
