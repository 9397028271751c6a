((attribute
  object: (_) @p1) @p0 @here
  (#api? @p0 "tl.tensor.expand")
  (#dtype? @p1 "fp32"))
