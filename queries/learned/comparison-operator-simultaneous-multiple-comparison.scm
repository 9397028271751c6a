((comparison_operator
  operators: _
  operators: "<") @here)
