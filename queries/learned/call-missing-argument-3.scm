((call
  function: (_) @p1) @p0 @here
  (#missing-argument? @p0)
  (#api? @p1 "tl.argmax" "tl.argmin" "tl.cdiv" "tl.max" "tl.rand" "tl.sum" "tl.zeros" "tl.zeros_like"))
