//! Errors in a reply, phrased for the model that wrote it.

/// The reason why a reply gives no candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The reply contains no edit.
    #[error(
        "there is no edit in the reply; write each as a line `<<<<<<< OLD`, the lines to replace, a line `=======`, the new lines, and a line `>>>>>>> NEW`"
    )]
    NoBlock,
    /// The reply contains no file.
    #[error("there is no Python file in the reply; write the whole file in one block between ```python and ```")]
    NoFile,
    /// An edit has no end.
    #[error("the edit that begins on line {line} of the reply has no end; end each with a line `>>>>>>> NEW`")]
    Unfinished {
        /// The line of the reply on which the edit begins, from 1.
        line: usize,
    },
    /// The reply contains too many edits.
    #[error("there are {count} edits in the reply, at most {most} are read; change less at a time")]
    Many {
        /// The number of edits.
        count: usize,
        /// The largest number allowed.
        most: usize,
    },
    /// The old text of an edit is empty, so that it matches anywhere.
    #[error("an edit replaces nothing; to insert lines, put a line that is there already into both parts")]
    Empty,
    /// The old text does not occur in the source.
    #[error(
        "this text does not occur in the file:\n{old}\nThe nearest lines are, from line {line} on:\n{nearest}\nCopy the lines exactly, with their spaces"
    )]
    Nowhere {
        /// The old text.
        old: String,
        /// The line of the source where the most similar lines begin, from 1.
        line: usize,
        /// The most similar lines of the source.
        nearest: String,
    },
    /// The old text occurs several times in the source.
    #[error(
        "this text occurs several times in the file, on the lines {}:\n{old}\nAdd lines before or after it, so that it occurs only once", list(.lines)
    )]
    Several {
        /// The old text.
        old: String,
        /// The lines where it occurs, from 1; only the first few.
        lines: Vec<usize>,
    },
    /// Two edits change the same lines.
    #[error("two edits change the same text, on line {line} of the file; make one edit of them")]
    Overlap {
        /// The line, from 1.
        line: usize,
    },
    /// The result equals the source.
    #[error("the edits change nothing; change the code, or describe another step")]
    Unchanged,
    /// The reply or its result is too long.
    #[error("it is too long ({bytes} bytes, at most {most}); write the code alone, once")]
    TooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The largest length, in bytes.
        most: usize,
    },
    /// The text contains an invisible character.
    #[error("line {line} of the code has the invisible character U+{code:04X}; write it without")]
    Hidden {
        /// The line, from 1.
        line: usize,
        /// The code point of the character.
        code: u32,
    },
    /// The result is not valid Python.
    #[error("the code is not Python: the first syntax error is on line {line}: {shown}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The text at that place.
        shown: String,
    },
    /// A required name is not defined.
    #[error("the file must define {}, under these names; keep all functions that others call", names.join(", "))]
    Missing {
        /// The missing names.
        names: Vec<String>,
    },
}

fn list(lines: &[usize]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
