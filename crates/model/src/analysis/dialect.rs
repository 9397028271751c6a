//! Whether a file is written for another compiler than Triton's own.
//!
//! Makers of other accelerators ship compilers that take the same language under the same name, `import triton`, with rules
//! of their own: Triton-Ascend takes tiles of any size and fills masked lanes by itself. What the documentation of
//! Triton leaves undefined or forbids may be fine there, and nobody knows.

/// Words that a file written for such a compiler has: devices, makers, and functions that only they have.
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

/// Whether `text` has one of the words, in any case, between anything but letters (`torch_npu`, `GEMS_ASCEND`).
#[must_use]
pub fn names_other_compiler(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let bytes = lower.as_bytes();
    let letter = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphabetic);
    WORDS.iter().any(|word| {
        memchr::memmem::find_iter(bytes, word).any(|at| !letter(at.checked_sub(1)) && !letter(Some(at + word.len())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_between_anything_but_letters() {
        for text in ["import torch_npu", "torch.npu.empty_cache()", "log('GEMS_ASCEND ADD')", "x = tl.extract_slice(y)"]
        {
            assert!(names_other_compiler(text), "{text}");
        }
        for text in ["torch.sort(x, descending=True)", "ascending order", "inputs = numpy", "cannot"] {
            assert!(!names_other_compiler(text), "{text}");
        }
    }
}
