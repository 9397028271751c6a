((assignment
  right: (call
    function: (_) @p3
    arguments: (argument_list))) @here
  (#api? @p3 "builtins.list"))
