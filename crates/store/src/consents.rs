//! The user's consents to send data to language models.

use rusqlite::params;

use base::clock::now_milliseconds;

use super::{Store, StoreError};

impl Store {
    /// Stores a consent. `key` is a hash of what is sent and of the recipient.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn agree(&mut self, key: &[u8; 32]) -> Result<(), StoreError> {
        let agree = "INSERT OR REPLACE INTO consents (key, given) VALUES (?1, ?2)";
        self.connection.execute(agree, params![key, now_milliseconds()]).map_err(|source| self.error(source))?;
        Ok(())
    }

    /// Whether a consent with this key is stored.
    ///
    /// # Errors
    /// Returns an error when SQLite fails.
    pub fn has_agreed(&self, key: &[u8; 32]) -> Result<bool, StoreError> {
        let ask = "SELECT EXISTS (SELECT 1 FROM consents WHERE key = ?1)";
        self.connection.query_row(ask, params![key], |row| row.get(0)).map_err(|source| self.error(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consents_are_stored() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("store.db")).unwrap();
        assert!(!store.has_agreed(&[1; 32]).unwrap());
        store.agree(&[1; 32]).unwrap();
        store.agree(&[1; 32]).unwrap();
        let store = Store::open(&folder.path().join("store.db")).unwrap();
        assert!(store.has_agreed(&[1; 32]).unwrap() && !store.has_agreed(&[2; 32]).unwrap());
    }
}
