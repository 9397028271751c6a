((assignment
  left: (pattern_list
    . (_)
    . (_)
    . (_) .)
  right: (expression_list
    . (_)
    . (_) .)) @here)
