//! The notifications of the client, by subject. [`backend`](super::backend) says which notification goes to which handler.

pub(super) mod cancel_progress;
pub(super) mod initialized;
pub(super) mod notebook;
pub(super) mod text_document;
pub(super) mod workspace;
