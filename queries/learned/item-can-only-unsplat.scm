((call
  function: (attribute
    object: (call
      function: (_) @p3)) @p1
  arguments: (_) @p9) @here
  (#api? @p1 "tl.tensor.item")
  (#api? @p3 "tl.load" "tl.maximum" "tl.sin" "tl.tensor.to")
  (#eq? @p9 "()"))
