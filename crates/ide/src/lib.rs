//! The editor features besides diagnostics: completion, signature help, definitions and references, the outline,
//! semantic tokens, inlay hints, types on hover, and the resources that a kernel uses.
//!
//! All of them are pure functions of the text, its model and the Triton version, as the rules are. Positions are byte
//! offsets.
//!
//! The text often does not parse while a user types. The context of the cursor is therefore read from the characters
//! ([`cursor`]), and where the parser found an error, the model is built without the statement that is being typed
//! ([`cursor_context`]).

pub mod classify;
pub mod complete;
pub mod cursor;
pub mod cursor_context;
pub mod describe;
pub mod hints;
pub mod names;
pub mod outline;
pub mod resources;
pub mod signature;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod types;
