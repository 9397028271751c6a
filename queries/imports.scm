; Everything that may bind a name to triton or triton.language.
(import_statement) @import
(import_from_statement) @import
