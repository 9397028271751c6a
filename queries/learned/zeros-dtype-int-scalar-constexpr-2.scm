((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (_) @p4 .)
    (keyword_argument
      name: (_) @p6
      value: (identifier) @p7))) @here
  (#api? @p1 "tl.zeros")
  (#kind? @p4 "int")
  (#kind? @p4 "scalar")
  (#constexpr? @p4)
  (#eq? @p6 "dtype")
  (#kind? @p7 "float"))
