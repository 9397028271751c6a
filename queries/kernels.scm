; Functions that may be kernels: whether a decorator is Triton's is decided on the aliases of the file.
(decorated_definition
  definition: (function_definition)) @decorated
