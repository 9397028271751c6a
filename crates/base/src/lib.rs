//! What every layer may use: random numbers and the calendar.

pub mod clock;
pub mod rng;
