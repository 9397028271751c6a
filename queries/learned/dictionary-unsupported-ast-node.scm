((dictionary) @here)
