//! Seeds of random number generators.

/// A hash of a seed from which the seed cannot be derived: candidates may read the seed of a random number generator,
/// and the numbers of other calls follow from the seed of one.
pub(crate) fn mixed(seed: u64) -> u64 {
    let hash = blake3::hash(&seed.to_le_bytes());
    hash.as_bytes().iter().take(7).fold(0, |all, &byte| all << 8 | u64::from(byte))
}
