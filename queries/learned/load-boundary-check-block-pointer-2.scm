((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p3
    (keyword_argument
      name: (_) @p5
      value: (true)))) @here
  (#api? @p1 "tl.load")
  (#kind? @p3 "block-pointer")
  (#eq? @p5 "boundary_check"))
