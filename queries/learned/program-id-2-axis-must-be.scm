((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "**"
      right: (_) @p6) .)) @here
  (#api? @p1 "tl.program_id")
  (#eq? @p4 "2")
  (#eq? @p6 "70"))
