//! Access to the user's Python from Rust: finding the interpreter, the processes that run in it, and pools of GPUs.

pub mod pool;
pub mod python;
