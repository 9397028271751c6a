((attribute) @p0 @here
  (#unknown-member? @p0))
