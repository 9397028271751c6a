((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    (keyword_argument
      name: (_) @p8
      value: (_) @p9))) @here
  (#api? @p1 "tl.load")
  (#eq? @p8 "mask")
  (#kind? @p9 "tuple"))
