((yield) @here)
