((binary_operator
  left: (identifier)
  operator: "<<"
  right: (identifier) @p3) @here
  (#not-constexpr? @p3))
