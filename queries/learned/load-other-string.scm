((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    (keyword_argument
      name: (_) @p11
      value: (_) @p12))) @here
  (#api? @p1 "tl.load")
  (#eq? @p11 "other")
  (#kind? @p12 "string"))
