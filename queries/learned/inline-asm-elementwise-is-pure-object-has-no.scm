((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (list
      . (_)
      . (_) .)
    . (list)
    (_)
    (keyword_argument
      name: (_) @p13
      value: (_))
    (keyword_argument
      name: (_) @p16
      value: (_) @p17))) @here
  (#api? @p1 "tl.inline_asm_elementwise")
  (#eq? @p13 "is_pure")
  (#eq? @p16 "pack")
  (#eq? @p17 "1"))
