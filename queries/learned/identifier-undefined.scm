((identifier) @p0 @here
  (#undefined? @p0))
