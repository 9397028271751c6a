((set
  . (_)) @here)
