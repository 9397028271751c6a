//! Listings of a kernel's intermediate representations and assembly, in which each part is below a comment with its
//! source line.

mod assembly;
mod llvm;
mod mlir;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::question::CompileTarget;

/// A stage of compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompilerStage {
    /// Triton's intermediate representation without layouts (TTIR).
    Ttir,
    /// Triton's GPU representation, with the layouts of tensors over threads (TTGIR).
    Ttgir,
    /// LLVM IR.
    Llir,
    /// PTX, NVIDIA's virtual assembly.
    Ptx,
    /// SASS, the machine code of NVIDIA GPUs.
    Sass,
    /// AMDGCN, the assembly of AMD GPUs.
    Amdgcn,
}

impl CompilerStage {
    /// All stages in the order of compilation.
    pub const ALL: [Self; 6] = [Self::Ttir, Self::Ttgir, Self::Llir, Self::Ptx, Self::Sass, Self::Amdgcn];

    /// The name of the stage, also used as a file extension.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ttir => "ttir",
            Self::Ttgir => "ttgir",
            Self::Llir => "llir",
            Self::Ptx => "ptx",
            Self::Sass => "sass",
            Self::Amdgcn => "amdgcn",
        }
    }

    /// The stage of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|stage| stage.name() == name)
    }

    /// Whether compilation for a device has this stage.
    #[must_use]
    pub fn is_of(self, device: &CompileTarget) -> bool {
        match self {
            Self::Ttir | Self::Ttgir | Self::Llir => true,
            Self::Ptx | Self::Sass => device.backend == "cuda",
            Self::Amdgcn => device.backend == "hip",
        }
    }

    /// The marker that begins a comment in the stage's text.
    #[must_use]
    pub fn comment(self) -> &'static str {
        match self {
            Self::Ttir | Self::Ttgir | Self::Ptx | Self::Sass => "//",
            Self::Llir | Self::Amdgcn => ";",
        }
    }
}

/// A line of a file, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    file: Rc<str>,
    line: u32,
}

/// An origin in the source: the line, then the inlined calls around it; empty if unknown.
type Origin = Rc<[Frame]>;

/// A line of a stage's text without its debug location.
#[derive(Debug)]
struct Row<'a> {
    text: Cow<'a, str>,
    /// The origin of an instruction; `None` for other lines.
    origin: Option<Origin>,
}

/// The label of instructions whose source line is unknown.
const NOWHERE: &str = "no line";

/// The user's files: their paths, as passed to Triton, and their texts.
pub type Sources = [(String, Arc<str>)];

/// The text of a stage, with a comment that quotes the source line above the lines that come from it.
#[must_use]
pub fn annotated(stage: CompilerStage, text: &str, sources: &Sources) -> String {
    let rows = match stage {
        CompilerStage::Ttir | CompilerStage::Ttgir => mlir::rows(text),
        CompilerStage::Llir => llvm::rows(text),
        CompilerStage::Ptx | CompilerStage::Amdgcn => assembly::rows(text),
        CompilerStage::Sass => assembly::sass_rows(text),
    };
    let mut labels = Labels::new(sources);
    let (mut whole, mut present) = (String::with_capacity(text.len()), None);
    for row in rows {
        let label = row.origin.map(|origin| labels.of(&origin).unwrap_or_else(|| Rc::from(NOWHERE)));
        // At the start there is no label yet, so no label for unknown lines is needed.
        if let Some(label) = label.filter(|label| present.is_some() || &**label != NOWHERE)
            && present.as_ref() != Some(&label)
        {
            let indent = &row.text[..row.text.len() - row.text.trim_start().len()];
            whole.extend([indent, stage.comment(), " ", &label, "\n"]);
            present = Some(label);
        }
        whole.extend([&row.text, "\n"]);
    }
    whole
}

/// The labels of origins.
struct Labels<'a> {
    /// For each path, the short name and the lines of the file.
    files: HashMap<&'a str, (&'a str, Vec<&'a str>)>,
    known: HashMap<(Rc<str>, u32, usize), Rc<str>>,
}

impl<'a> Labels<'a> {
    fn new(sources: &'a Sources) -> Self {
        let name = |path: &'a str| path.rsplit(['/', '\\']).next().unwrap_or(path);
        let is_single = |short: &str| sources.iter().filter(|(path, _)| name(path) == short).count() == 1;
        let files = sources.iter().map(|(path, text)| {
            let short = Some(name(path)).filter(|short| is_single(short)).unwrap_or(path);
            (path.as_str(), (short, text.lines().collect()))
        });
        Self { files: files.collect(), known: HashMap::new() }
    }

    fn of(&mut self, origin: &Origin) -> Option<Rc<str>> {
        // The innermost frame in the user's files, else the outermost frame.
        let own: Vec<&Frame> = origin.iter().filter(|frame| self.files.contains_key(&*frame.file)).collect();
        let (inner, outer) = (*own.first().or(origin.last().as_ref())?, own.last());
        let outer = outer.filter(|outer| **outer != inner);
        let call = outer.map_or(0, |outer| outer.line as usize);
        let key = (Rc::clone(&inner.file), inner.line, call);
        if let Some(known) = self.known.get(&key).filter(|_| outer.is_none_or(|outer| outer.file == inner.file)) {
            return Some(Rc::clone(known));
        }
        let mut label = self.place(inner);
        if let Some(outer) = outer {
            label = format!("{label} (called at {})", self.place(outer).split(": ").next().unwrap_or_default());
        }
        let label: Rc<str> = label.into();
        self.known.insert(key, Rc::clone(&label));
        Some(label)
    }

    /// `matmul.py:42: acc = tl.dot(a, b, acc)`
    fn place(&self, frame: &Frame) -> String {
        match self.files.get(&*frame.file) {
            Some((name, lines)) => {
                let line = lines.get((frame.line as usize).wrapping_sub(1)).map_or("", |line| line.trim());
                format!("{name}:{}: {line}", frame.line)
            }
            None => {
                let name = frame.file.rsplit(['/', '\\']).next().unwrap_or(&frame.file);
                format!("{name}:{}", frame.line)
            }
        }
    }
}

/// Decodes a quoted text, in which other bytes are escaped as octal (three digits) or hexadecimal (two digits) numbers.
fn unescaped(text: &str, radix: u32) -> String {
    let digits = if radix == 8 { 3 } else { 2 };
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        let number = tail.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, number.and_then(|number| u8::from_str_radix(number, radix).ok()), tail) {
            (b'\\', Some(byte), _) => {
                bytes.push(byte);
                rest = &tail[digits..];
            }
            (b'\\', None, [escaped, tail @ ..]) => {
                bytes.push(*escaped);
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text between the first pair of quotes, and the rest after it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let start = text.find('"')? + 1;
    let mut is_escaped = false;
    let end = text[start..].find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    })?;
    Some((&text[start..start + end], &text[start + end + 1..]))
}

/// The number at the start of a text, and the rest after it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}
