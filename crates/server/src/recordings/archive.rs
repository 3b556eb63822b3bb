//! Recordings that were moved elsewhere once their call was over: another place that the same routes look into.

use std::ops::Range;
use std::path::Path;

use futures::stream::BoxStream;

use super::RecordingView;

/// Bytes of a recording's file, piece by piece.
pub type Pieces = BoxStream<'static, std::io::Result<Vec<u8>>>;

/// Where recordings are that are not on this server's disk any more. A trait, because this crate does not know how they
/// got there. Ids were looked at before: letters, digits, `-`, `_` and `.`. Each error is a reason for people, and means
/// that the place is not there at the moment.
#[async_trait::async_trait]
pub trait Archive: Send + Sync + std::fmt::Debug {
    /// The newest recordings, at most so many, and how many there are beyond them.
    ///
    /// # Errors
    /// The place is away.
    async fn newest(&self, most: usize) -> Result<(Vec<RecordingView>, usize), String>;

    /// One of them; `None` if it is not there.
    ///
    /// # Errors
    /// The place is away.
    async fn view(&self, id: &str) -> Result<Option<RecordingView>, String>;

    /// How many bytes a file of one has; `None` if there is none.
    ///
    /// # Errors
    /// The place is away.
    async fn size(&self, id: &str, file: &str) -> Result<Option<u64>, String>;

    /// Part of a file.
    ///
    /// # Errors
    /// The place is away.
    async fn read(&self, id: &str, file: &str, part: Range<u64>) -> Result<Pieces, String>;

    /// Copies one into a folder; false if it is not there.
    ///
    /// # Errors
    /// The place is away, or the folder cannot be written to.
    async fn fetch(&self, id: &str, into: &Path) -> Result<bool, String>;
}
