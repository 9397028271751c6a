((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_)
    . (list)
    (keyword_argument
      name: (_) @p8
      value: (_) @p9)
    (keyword_argument
      name: (_) @p11
      value: (_))
    (keyword_argument
      name: (_) @p14
      value: (_) @p15))) @here
  (#api? @p1 "tl.inline_asm_elementwise")
  (#eq? @p8 "dtype")
  (#kind? @p9 "string")
  (#eq? @p11 "is_pure")
  (#eq? @p14 "pack")
  (#eq? @p15 "1"))
