; kernel[grid](arguments): a call of a subscript.
(call
  function: (subscript)
  arguments: (argument_list)) @launch
