((dictionary_comprehension) @here)
