//! Texts of kernels, each stored once and compressed.

use rusqlite::{Connection, OptionalExtension, params};

/// The compression level; a higher one makes the texts some per cent smaller and takes twice the time.
const EFFORT: u8 = 6;
/// The greatest length of a text that is kept, in bytes.
pub(super) const LONGEST: usize = 1 << 16;

/// Stores a text unless it is there. Returns its id.
pub(super) fn keep(connection: &Connection, text: &str) -> rusqlite::Result<i64> {
    let key = blake3::hash(text.as_bytes());
    let known = connection
        .prepare_cached("SELECT id FROM texts WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let body = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), EFFORT);
    connection
        .prepare_cached("INSERT INTO texts (key, body) VALUES (?1, ?2)")?
        .execute(params![key.as_bytes(), body])?;
    Ok(connection.last_insert_rowid())
}

/// Decompresses a stored text; `None` if it is damaged.
pub(super) fn read(body: &[u8]) -> Option<String> {
    let bytes = miniz_oxide::inflate::decompress_to_vec_with_limit(body, LONGEST).ok()?;
    String::from_utf8(bytes).ok()
}

/// Deletes texts to which no failure and no compiling kernel refers.
pub(super) fn sweep(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM texts WHERE NOT EXISTS (SELECT 1 FROM failures WHERE text = texts.id)
         AND NOT EXISTS (SELECT 1 FROM failures WHERE relative = texts.id)
         AND NOT EXISTS (SELECT 1 FROM accepted WHERE text = texts.id)",
        [],
    )?;
    Ok(())
}
