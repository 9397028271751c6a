//! What processes in the user's interpreter have in common.

/// Whether a simulated device was asked for (tests).
#[must_use]
pub fn simulated() -> bool {
    std::env::var_os(crate::protocol::FAKE_DEVICE_ENV).is_some_and(|name| !name.is_empty())
}
