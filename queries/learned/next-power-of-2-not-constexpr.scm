((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3 .)) @here
  (#api? @p1 "triton.next_power_of_2")
  (#not-constexpr? @p3))
