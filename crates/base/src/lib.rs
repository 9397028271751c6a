//! Utilities that every layer may use: a random number generator and the clock.

pub mod clock;
pub mod rng;
