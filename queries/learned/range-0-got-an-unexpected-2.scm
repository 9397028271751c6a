((for_statement
  left: (_)
  right: (call
    function: (_) @p3
    arguments: (argument_list
      . (_) @p5
      (keyword_argument
        name: (_) @p8
        value: (_) @p9)))) @here
  (#api? @p3 "tl.range")
  (#eq? @p5 "0")
  (#eq? @p8 "unroll")
  (#eq? @p9 "2"))
