((identifier) @p0 @here
  (#plain-global? @p0))
