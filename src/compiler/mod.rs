//! Triton itself as a second opinion: its front end, asked in the background in the user's own interpreter.

mod extract;

pub use extract::{Extracted, extract};
