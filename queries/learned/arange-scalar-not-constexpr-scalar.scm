((boolean_operator
  left: (_) @p1
  operator: "and"
  right: (binary_operator
    left: (_) @p4
    operator: "+"
    right: (call
      function: (_) @p7))) @here
  (#kind? @p1 "scalar")
  (#not-constexpr? @p1)
  (#kind? @p4 "scalar")
  (#api? @p7 "tl.arange"))
