((call
  function: (_) @p1) @p0 @here
  (#too-many-arguments? @p0)
  (#api? @p1 "tl.sigmoid"))
