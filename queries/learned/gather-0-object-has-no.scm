((call
  function: (_) @p1
  arguments: (argument_list
    . (_)
    . (_) @p4
    . (_) .)) @here
  (#api? @p1 "tl.gather")
  (#eq? @p4 "0"))
