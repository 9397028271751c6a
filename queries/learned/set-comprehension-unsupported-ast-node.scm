((set_comprehension) @here)
