((binary_operator
  left: (call
    function: (_) @p2
    arguments: (argument_list
      . (_) @p6 .))
  operator: "+"
  right: (_) @p8) @here
  (#api? @p2 "tl.tensor.store")
  (#eq? @p6 "0.0")
  (#kind? @p8 "int")
  (#not-constexpr? @p8))
