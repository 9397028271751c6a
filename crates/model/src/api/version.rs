//! Version numbers of Triton.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A release of Triton, for example 3.6.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Patch number.
    pub patch: u32,
}

/// The error for a text that is not a version of Triton; it holds the text.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a version of Triton; write it like `3.6.0` or `3.6`")]
pub struct VersionError(pub String);

impl Version {
    /// Major and minor number. Releases that share them have the same table.
    #[must_use]
    pub fn series(self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = VersionError;

    /// Parses `3.6`, `3.6.0`, and the names of builds: `3.6.0+git1a2b`, `3.6.0rc1`, `3.2.0.post1`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || VersionError(text.to_owned());
        let mut numbers = text.trim().splitn(3, '.').map(|part| {
            let digits = part.find(|c: char| !c.is_ascii_digit()).map_or(part, |end| &part[..end]);
            digits.parse::<u32>().map_err(|_| error())
        });
        let major = numbers.next().ok_or_else(error)??;
        let minor = numbers.next().ok_or_else(error)??;
        let patch = numbers.next().transpose()?.unwrap_or(0);
        Ok(Self { major, minor, patch })
    }
}

impl TryFrom<String> for Version {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_builds_are_parsed() {
        let read = |text: &str| text.parse::<Version>().map(|version| version.to_string());
        assert_eq!(read("3.6.0").as_deref(), Ok("3.6.0"));
        assert_eq!(read("3.6").as_deref(), Ok("3.6.0"));
        assert_eq!(read("3.2.0+git1a2b3c").as_deref(), Ok("3.2.0"));
        assert_eq!(read("3.5.0.post1").as_deref(), Ok("3.5.0"));
        assert_eq!(read("main"), Err(VersionError("main".to_owned())));
        assert_eq!(read("3"), Err(VersionError("3".to_owned())));
    }
}
