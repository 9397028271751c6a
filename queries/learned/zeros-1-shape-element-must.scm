((call
  function: (_) @p1
  arguments: (argument_list
    . (tuple
      . (binary_operator
        left: (_)
        operator: "+"
        right: (_) @p7) .)
    (_))) @here
  (#api? @p1 "tl.zeros")
  (#eq? @p7 "1"))
