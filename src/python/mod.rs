//! The user's Python: where it is and what is installed in it.

pub mod environment;
