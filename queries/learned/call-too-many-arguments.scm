((call
  function: (_) @p1) @p0 @here
  (#too-many-arguments? @p0)
  (#api? @p1 "tl.abs" "tl.arange" "tl.exp" "tl.program_id" "tl.split" "tl.sqrt"))
