//! What an editor shows of a file beside findings: what may be typed at a place, signatures, definitions and uses, an
//! outline, what kind of thing each name is, hints.
//!
//! Pure, like the rules: functions of the text, its model and the Triton version. Places are byte offsets.
//!
//! Texts are mostly broken while these questions are asked. What stands around the cursor is therefore read off the text
//! ([`cursor`]), and where the parser found an error the model is built without the statement that is being typed
//! ([`place`]).

pub mod classify;
pub mod complete;
pub mod cursor;
pub mod describe;
pub mod hints;
pub mod names;
pub mod outline;
pub mod place;
pub mod resources;
pub mod signature;
#[cfg(test)]
mod tests;
pub mod tokens;
pub mod types;
