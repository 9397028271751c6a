//! Detection of files that are written for another compiler than Triton's own.
//!
//! Makers of other accelerators ship compilers that accept the same language under the same name, `import triton`, with
//! their own rules: Triton-Ascend accepts tiles of any size and fills masked lanes by itself. Code that Triton's
//! documentation leaves undefined or forbids may be correct there.

/// Words that occur in files for such compilers: devices, makers, and functions that only these compilers have.
const WORDS: &[&str] = &[
    "aipu",
    "ascend",
    "cambricon",
    "cann",
    "enflame",
    "extract_slice",
    "gcu",
    "iluvatar",
    "insert_slice",
    "kunlunxin",
    "metax",
    "mlu",
    "mthreads",
    "musa",
    "npu",
    "sunrise",
    "tsingmicro",
];

/// Whether one of the words occurs in `text`, in any case and not between letters (`torch_npu`, `GEMS_ASCEND`).
///
/// Comments do not count, and neither do questions about the device, since a file that asks is written for Triton's own
/// compiler, too: `is_npu_available()`, `device == "npu"`.
#[must_use]
pub fn names_other_compiler(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let bytes = lower.as_bytes();
    let letter = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphabetic);
    WORDS.iter().any(|word| {
        memchr::memmem::find_iter(bytes, word).any(|at| {
            let end = at + word.len();
            !letter(at.checked_sub(1))
                && !letter(Some(end))
                && !asks_about_device(bytes, at, end)
                && !is_in_comment(bytes, at)
        })
    })
}

/// Whether the word at `start..end` is a string of its own, or part of a name that begins with `is_` or `has_`.
fn asks_about_device(bytes: &[u8], start: usize, end: usize) -> bool {
    let quote = |at: Option<usize>| at.and_then(|at| bytes.get(at)).filter(|byte| matches!(byte, b'"' | b'\''));
    if let (Some(before), Some(after)) = (quote(start.checked_sub(1)), quote(Some(end))) {
        return before == after;
    }
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let from = bytes[..start].iter().rposition(|byte| !is_of_name(byte)).map_or(0, |at| at + 1);
    let name = bytes[from..start].strip_prefix(b"_").unwrap_or(&bytes[from..start]);
    name.starts_with(b"is_") || name.starts_with(b"has_")
}

/// Whether a `#` comes before `at` in its line.
fn is_in_comment(bytes: &[u8], at: usize) -> bool {
    let line = bytes[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes[line..at].contains(&b'#')
}

/// Modules of forks of Triton, and of extensions, that accept more than Triton's own front end.
const EXTENSIONS: &[&str] = &["triton_dist", "triton.language.extra.tlx", "utlx_plugin", "triton.experimental"];

/// Whether a file uses a fork or an extension whose language has more than Triton's own.
#[must_use]
pub fn extends_language(text: &str) -> bool {
    let bytes = text.as_bytes();
    EXTENSIONS.iter().any(|module| memchr::memmem::find(bytes, module.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_compilers_match_as_whole_words() {
        for text in ["import torch_npu", "torch.npu.empty_cache()", "log('GEMS_ASCEND ADD')", "x = tl.extract_slice(y)"]
        {
            assert!(names_other_compiler(text), "{text}");
        }
        for text in [
            "torch.sort(x, descending=True)",
            "ascending order",
            "inputs = numpy",
            "cannot",
            "from liger_kernel.utils import is_npu_available",
            "if not _is_npu():",
            "if HAS_NPU:",
            "if device == 'npu':",
            "x = 4  # tuned on xpu and npu",
        ] {
            assert!(!names_other_compiler(text), "{text}");
        }
    }
}
