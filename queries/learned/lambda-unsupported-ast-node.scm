((lambda) @here)
