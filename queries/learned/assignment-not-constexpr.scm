((assignment
  left: (pattern_list
    . (_)
    . (_) .)
  right: (_) @p4) @here
  (#not-constexpr? @p4))
