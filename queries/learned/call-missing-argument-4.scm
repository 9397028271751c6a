((call
  function: (_) @p1) @p0 @here
  (#missing-argument? @p0)
  (#api? @p1 "tl.arange" "tl.full" "tl.where"))
