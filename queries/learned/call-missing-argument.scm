((call
  function: (_) @p1) @p0 @here
  (#missing-argument? @p0)
  (#api? @p1 "tl.abs" "tl.atomic_max" "tl.cos" "tl.dot" "tl.floor" "tl.fma" "tl.gather" "tl.log" "tl.make_tensor_descriptor"))
