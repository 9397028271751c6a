((assignment
  right: (_) @p2) @here
  (#eq? @p2 "1j"))
