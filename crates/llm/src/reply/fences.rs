//! Fenced code blocks of a reply, and the choice of the file among them.

/// The largest number of blocks that are read.
const MOST_BLOCKS: usize = 64;

/// A fenced code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodeBlock {
    /// The info string after the opening fence.
    pub(super) info: String,
    /// The text of the block, including its last line end.
    pub(super) text: String,
}

/// Whether the info string of a block allows Python.
fn is_python(info: &str) -> bool {
    let name = info.split_whitespace().next().unwrap_or_default().to_ascii_lowercase();
    matches!(name.as_str(), "" | "python" | "python3" | "py" | "triton")
}

/// The character, length and info string of an opening fence, if the line is one.
pub(super) fn opens(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim();
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    let is_fence = length >= 3 && !rest.contains('`');
    is_fence.then(|| (mark, length, rest.trim()))
}

/// The blocks of a reply. A block without an end extends to the end of the reply.
pub(super) fn blocks(reply: &str) -> Vec<CodeBlock> {
    let mut found: Vec<CodeBlock> = Vec::new();
    let mut open: Option<(char, usize)> = None;
    for line in reply.split_inclusive('\n') {
        match (opens(line), open) {
            (Some((mark, length, info)), None) => {
                if found.len() == MOST_BLOCKS {
                    break;
                }
                open = Some((mark, length));
                found.push(CodeBlock { info: info.to_owned(), text: String::new() });
            }
            (Some((mark, length, "")), Some((own, least))) if mark == own && length >= least => open = None,
            (_, Some(_)) => {
                if let Some(last) = found.last_mut() {
                    last.text.push_str(line);
                }
            }
            (_, None) => {}
        }
    }
    found
}

/// The candidates for the file of a reply, the most likely first.
pub(super) fn files(reply: &str) -> Vec<String> {
    let all = blocks(reply);
    let python: Vec<&CodeBlock> = all.iter().filter(|block| is_python(&block.info)).collect();
    // The last block is the final version of most models.
    let mut files: Vec<String> = python.iter().rev().map(|block| block.text.clone()).collect();
    if python.len() > 1 {
        files.push(python.iter().map(|block| block.text.as_str()).collect::<Vec<_>>().join("\n\n"));
    }
    // A fence in a docstring may have ended the block too early.
    files.extend(from_first_to_last(reply).filter(|file| !files.contains(file)));
    if all.is_empty() {
        files.extend(bare(reply));
    }
    files.iter_mut().for_each(|file| *file = file.trim_start_matches('\n').trim_end().to_owned() + "\n");
    files.retain(|file| file.len() > 1);
    files
}

/// The text from the first Python fence to the last fence.
fn from_first_to_last(reply: &str) -> Option<String> {
    let lines: Vec<&str> = reply.split_inclusive('\n').collect();
    let first = lines.iter().position(|line| opens(line).is_some_and(|(.., info)| is_python(info)))?;
    let last = lines.iter().rposition(|line| opens(line).is_some_and(|(.., info)| info.is_empty()))?;
    (first < last).then(|| lines[first + 1..last].concat())
}

/// Code without a fence, from the first line that looks like the beginning of a file.
fn bare(reply: &str) -> Option<String> {
    let begins = ["import ", "from ", "\"\"\"", "@triton.", "def ", "# "];
    let mut at = 0;
    for line in reply.split_inclusive('\n') {
        if begins.iter().any(|begin| line.starts_with(begin)) {
            return Some(reply[at..].to_owned());
        }
        at += line.len();
    }
    None
}
