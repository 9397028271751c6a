((attribute
  object: (_) @p1) @p0 @here
  (#api? @p0 "tl.tensor.T")
  (#dtype? @p1 "fp32")
  (#rank? @p1 "1"))
