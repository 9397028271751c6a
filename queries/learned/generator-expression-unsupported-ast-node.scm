((generator_expression) @here)
