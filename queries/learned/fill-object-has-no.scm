((attribute
  object: (_)) @p0 @here
  (#api? @p0 "tl.tensor.fill_"))
