((call
  function: (_) @p1
  arguments: (argument_list
    . (binary_operator
      left: (_) @p4
      operator: "+"
      right: (_) @p6))) @here
  (#api? @p1 "tl.cumsum" "tl.sum")
  (#kind? @p4 "pointer")
  (#shapes-differ? @p4 @p6)
  (#kind? @p6 "int"))
