((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p11
    (keyword_argument
      name: (_) @p13
      value: (_)))) @here
  (#api? @p1 "tl.tensor.to")
  (#api? @p11 "tl.float32")
  (#eq? @p13 "dtype"))
