((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p7
    (keyword_argument
      name: (_) @p9
      value: (_) @p10))) @here
  (#api? @p1 "tl.store")
  (#eq? @p7 "1.0")
  (#eq? @p9 "eviction_policy")
  (#kind? @p10 "string"))
