((augmented_assignment
  operator: "*="
  right: (_) @p3) @here
  (#eq? @p3 "2"))
