((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    (keyword_argument
      name: (_) @p5
      value: (_) @p6))) @here
  (#api? @p1 "tl.zeros")
  (#eq? @p5 "dtype")
  (#api? @p6 "tl.cat" "tl.full" "tl.where"))
