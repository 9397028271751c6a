//! What is wrong with a reply, in words for the model that wrote it.

/// Why a reply gives no candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// There is no edit in it.
    #[error(
        "there is no edit in the reply; write each as a line `<<<<<<< OLD`, the lines to replace, a line `=======`, the new lines, and a line `>>>>>>> NEW`"
    )]
    NoBlock,
    /// There is no file in it.
    #[error("there is no Python file in the reply; write the whole file in one block between ```python and ```")]
    NoFile,
    /// An edit does not end.
    #[error("the edit that begins on line {line} of the reply has no end; end each with a line `>>>>>>> NEW`")]
    Unfinished {
        /// Where it begins in the reply, from 1.
        line: usize,
    },
    /// There are too many edits.
    #[error("there are {count} edits in the reply, at most {most} are read; change less at a time")]
    Many {
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// An edit that could be made anywhere.
    #[error("an edit replaces nothing; to insert lines, put a line that is there already into both parts")]
    Empty,
    /// The source does not have it.
    #[error(
        "this text stands nowhere in the file:\n{old}\nThe nearest lines are, from line {line} on:\n{nearest}\nCopy the lines exactly, with their spaces"
    )]
    Nowhere {
        /// What is not there.
        old: String,
        /// Where the lines that come nearest begin, from 1.
        line: usize,
        /// These lines.
        nearest: String,
    },
    /// The source has it several times.
    #[error(
        "this text stands in the file several times, on the lines {}:\n{old}\nAdd lines before or after it, so that it stands there once", list(.lines)
    )]
    Several {
        /// What is there several times.
        old: String,
        /// Where, from 1; not more than a few.
        lines: Vec<usize>,
    },
    /// Two edits change the same lines.
    #[error("two edits change the same text, on line {line} of the file; make one edit of them")]
    Overlap {
        /// Where, from 1.
        line: usize,
    },
    /// The result is what it was.
    #[error("the edits change nothing; change the code, or describe another step")]
    Unchanged,
    /// The reply, or what it makes, is too long.
    #[error("it is too long ({bytes} bytes, at most {most}); write the code alone, once")]
    TooLong {
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// Something that is not seen.
    #[error("line {line} of the code has the invisible character U+{code:04X}; write it without")]
    Hidden {
        /// The line, from 1.
        line: usize,
        /// The character.
        code: u32,
    },
    /// It is not Python.
    #[error("the code is not Python: the first syntax error is on line {line}: {shown}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What stands there.
        shown: String,
    },
    /// Something is not defined.
    #[error("the file must define {}, under these names; keep all functions that others call", names.join(", "))]
    Missing {
        /// What is not there.
        names: Vec<String>,
    },
}

fn list(lines: &[usize]) -> String {
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
