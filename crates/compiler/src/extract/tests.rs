use std::path::{Path, PathBuf};

use model::kernel::{ImportTarget, ImportedFile};

use super::*;

fn extracted(text: &str, others: &[(&str, &str)], kernel: &str) -> Result<Vec<Extracted>, Vec<String>> {
    let files: HashMap<String, Arc<ImportedFile>> = others
        .iter()
        .map(|(name, text)| {
            let source = Source::parse(*text);
            let module = Module::build_whole(&source);
            let linked = ImportedFile { path: PathBuf::from(name), text: Arc::clone(source.text()), module };
            ((*name).to_owned(), Arc::new(linked))
        })
        .collect();
    let source = Source::parse(text);
    let mut module = Module::build(&source);
    let links = Links::follow(&module, Path::new("k"), &mut |_, import| {
        let (file, member) = import.split_once('.').map_or((import, None), |(file, name)| (file, Some(name)));
        Some(ImportTarget { file: Arc::clone(files.get(file)?), member: member.map(str::to_owned) })
    });
    module.link(Arc::new(links));
    extract(&source, &module, module.kernels.iter().find(|found| found.name == kernel).unwrap())
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.trim().is_empty()).collect()
}

const TEXT: &str = "\
import torch
import triton
import triton.language as tl
é = torch.ones(3)
N = tl.constexpr(M + 1)
M = 3
S = torch.finfo(torch.float16).eps

@torch.no_grad()
@triton.autotune(
    configs=[], key=['é'])
@triton.jit
def k(x, B: tl.constexpr = 4):
    tl.store(x + tl.arange(0, N), helper(B))

@triton.jit
def helper(b):
    return b

@triton.jit
def bad(x):
    return S + helper(x)

def host(x):
    k[(1,)](x)
";

#[test]
fn the_slice_contains_only_what_the_kernel_needs() {
    let files = extracted(TEXT, &[], "k").unwrap();
    let [own] = files.as_slice() else { panic!("{files:?}") };
    assert_eq!(own.text.lines().count(), own.lines.len());
    for (line, number) in own.text.lines().zip(&own.lines) {
        let there = TEXT.lines().nth(*number as usize).unwrap();
        assert!(there == line || line.trim().is_empty() && line.len() == there.len(), "{number}: {line}");
    }
    assert_eq!(
        lines(&own.text),
        [
            "import triton",
            "import triton.language as tl",
            "N = tl.constexpr(M + 1)",
            "M = 3",
            "@triton.jit",
            "def k(x, B: tl.constexpr = 4):",
            "    tl.store(x + tl.arange(0, N), helper(B))",
            "@triton.jit",
            "def helper(b):",
            "    return b",
        ]
    );
    let moved = format!("import gone\n\n{}", TEXT.replace("def host", "\n\ndef other"));
    assert_eq!(extracted(&moved, &[], "k").unwrap()[0].text, own.text);
}

#[test]
fn extraction_names_the_definitions_that_need_torch() {
    assert_eq!(extracted(TEXT, &[], "bad"), Err(vec!["S".to_owned(), "bad".to_owned(), "torch".to_owned()]));
}

#[test]
fn names_that_are_only_conditions_get_assumed_values() {
    let text = "\
from __future__ import annotations
import torch
import triton
from mine import IS_NVIDIA, on_npu
if IS_NVIDIA and not on_npu(1):
    @triton.jit
    def f(x): return x
else:
    f = None
P = 'a' if torch.cuda.is_available() else 'b'
@triton.jit
def k(x):
    f(x)
@triton.jit
def other(x):
    return f(IS_NVIDIA)
@triton.jit
def third(x):
    return P
";
    let files = extracted(text, &[], "k").unwrap();
    let assumed = |name: &str, truth, is_called| Assumed { name: name.to_owned(), truth, is_called };
    assert_eq!(files[0].assumed, [assumed("IS_NVIDIA", true, false), assumed("on_npu", false, true)]);
    let first = ["from __future__ import annotations", "import triton", "if IS_NVIDIA and not on_npu(1):"];
    assert_eq!(lines(&files[0].text)[..3], first);
    assert_eq!(files[0].lines[..3], [0, 2, 4]);
    let whole = files[0].in_place().text;
    let in_place = |at: usize| whole.lines().nth(at) == text.lines().nth(at);
    assert!(in_place(0) && in_place(2) && in_place(4) && in_place(10) && in_place(12), "{whole}");
    assert_eq!(files[0].lines.len(), files[0].text.lines().count());
    assert_eq!(extracted(text, &[], "other").unwrap_err(), ["IS_NVIDIA", "other"]);
    assert_eq!(extracted(text, &[], "third").unwrap_err(), ["P", "third", "torch"]);
}

#[test]
fn top_level_branches_keep_only_needed_statements() {
    let text = "\
import triton
if triton.runs():
    import torch
    N = 4; M = torch.ones(3)
    @decorated
    @triton.jit
    def k(x):
        return f(x, N)

    é = torch.ones(3)
    if N > 3:
        def host():
            torch.cuda.run()
    try:
        from triton.language.math import f
    except ImportError:
        f = None
else:
    raise ImportError()
";
    let files = extracted(text, &[], "k").unwrap();
    let shown: Vec<&str> = files[0].text.lines().map(str::trim_end).collect();
    assert_eq!(
        shown,
        [
            "import triton",
            "if triton.runs():",
            "    0",
            "    N = 4; 0",
            "",
            "    @triton.jit",
            "    def k(x):",
            "        return f(x, N)",
            "",
            "    0",
            "    if N > 3:",
            "        0",
            "",
            "    try:",
            "        from triton.language.math import f",
            "    except ImportError:",
            "        f = None",
            "else:",
            "    0",
        ]
    );
    for (line, number) in files[0].text.lines().zip(&files[0].lines) {
        assert_eq!(line.len(), text.lines().nth(*number as usize).unwrap().len(), "{line}");
    }
}

#[test]
fn imported_helpers_are_extracted_from_their_files() {
    let text = "import triton\nimport triton.language as tl\nfrom op import f\nimport lib\n\n@triton.jit\ndef k(x):\n    f(x)\n    lib.g(x)\n";
    let op = "import torch\nimport triton\nfrom lib import g\n\n@triton.jit\ndef f(x):\n    return g(x)\n\ndef host():\n    pass\n";
    let lib = "import torch\nimport triton\n\n@triton.jit\ndef g(x):\n    return x\n\nT = torch.float16\n";
    let files = extracted(text, &[("op", op), ("lib", lib)], "k").unwrap();
    assert_eq!(lines(&files[0].text)[..2], ["import triton", "@triton.jit"]);
    assert_eq!(files[0].imports, [("f".to_owned(), 1, Some("f".to_owned())), ("lib".to_owned(), 2, None)]);
    assert_eq!(files[1].imports, [("g".to_owned(), 2, Some("g".to_owned()))]);
    assert_eq!(lines(&files[2].text), ["import triton", "@triton.jit", "def g(x):", "    return x"]);
}

#[test]
fn constants_in_parameter_defaults_are_extracted_from_their_files() {
    let text = "import triton\nfrom op import N\n\n@triton.jit\ndef k(x, n=2 * N):\n    pass\n";
    let files = extracted(text, &[("op", "import torch\nN = 3\n")], "k").unwrap();
    assert_eq!(files[0].imports, [("N".to_owned(), 1, Some("N".to_owned()))]);
    assert_eq!(lines(&files[1].text), ["N = 3"]);
}
