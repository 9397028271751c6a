((binary_operator
  left: (_) @p1
  operator: "+"
  right: (_) @p5) @here
  (#api? @p1 "tl.tensor.dtype" "tl.tensor.shape")
  (#kind? @p5 "block"))
