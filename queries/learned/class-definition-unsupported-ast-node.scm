((class_definition) @here)
