((call
  function: (_) @p1) @p0 @here
  (#missing-argument? @p0)
  (#api? @p1 "tl.arange" "tl.associative_scan" "tl.atomic_add" "tl.atomic_cas" "tl.cat" "tl.clamp" "tl.device_print" "tl.exp" "tl.expand_dims" "tl.full" "tl.histogram" "tl.join" "tl.load" "tl.make_block_ptr" "tl.maximum" "tl.minimum" "tl.num_programs" "tl.program_id" "tl.reduce" "tl.sin" "tl.sqrt" "tl.store" "tl.trans" "tl.where"))
