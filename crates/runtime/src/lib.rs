//! The user's Python, seen from outside: which interpreter it is, the processes that run in it, and pools of GPUs.

pub mod pool;
pub mod python;
