((call
  function: (_) @p1
  arguments: (argument_list
    . (_) @p5
    (keyword_argument
      name: (_) @p7
      value: (_) @p8))) @here
  (#api? @p1 "tl.tensor.to")
  (#api? @p5 "tl.float64" "tl.int16" "tl.int64" "tl.uint8")
  (#eq? @p7 "bitcast")
  (#kind? @p8 "bool")
  (#kind? @p8 "scalar"))
