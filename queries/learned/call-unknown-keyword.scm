((call
  arguments: (argument_list
    (keyword_argument
      name: (_) @p5))) @here
  (#unknown-keyword? @p5))
