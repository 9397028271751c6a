((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    . (_) @p4 .)) @here
  (#api? @p1 "tl.atomic_xchg")
  (#kind? @p3 "int")
  (#not-constexpr? @p3)
  (#eq? @p4 "1"))
