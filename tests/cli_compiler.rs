//! Tests of the commands that run Triton itself, with the real Triton of `WARPSMITH_TEST_PYTHON`.

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

#[path = "common/folder.rs"]
mod folder;

use folder::Folder;

#[test]
fn the_compile_option_reports_errors_of_triton() {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let kernel = "import torch\nimport triton\nimport triton.language as tl\n\n# warpsmith: signature x=*fp16\n@triton.jit\ndef \
        k(x):\n    tl.store(x, tl.load(x), eviction_policy='never')\n";
    let settings = format!("select = ['C']\npython = '{python}'\n");
    let folder = Folder::new(&[
        ("k.py", kernel),
        ("good.py", &kernel.replace("never", "evict_last")),
        ("warpsmith.toml", &settings),
    ]);
    assert_eq!(folder.found(&[]), [""; 0]);
    assert_eq!(folder.found(&["--compile"]), ["k.py:8"]);
    folder.write("warpsmith.toml", b"select = ['C']\npython = 'gone/python'\n");
    let ran = folder.run(&["check", "--compile"]);
    assert!(ran.code == 0 && ran.err.contains("set `python` in warpsmith.toml"), "{}", ran.err);
}

/// Kernels to inspect: one with a helper in another file, one that is autotuned, one that does not compile.
const INSPECTED: &str = "import torch
import triton
import triton.language as tl

from helpers import half

DEVICE = torch.device('cuda')


# warpsmith: signature x=*fp32 n=i32 B=64
@triton.jit
def k(x, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = half(tl.load(x + i, mask=i < n))
    tl.store(x + i, v, mask=i < n)


@triton.autotune([triton.Config({'B': 64}, num_warps=2), triton.Config({'B': 256}, num_warps=8)], key=[])
@triton.jit
def tuned(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1.0)


@triton.jit
def broken(x):
    tl.store(x, oops)
";

fn inspected() -> (Folder, String) {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let helper = "import triton\n\n\n@triton.jit\ndef half(x):\n    return x / 2\n";
    let settings = format!("python = '{python}'\n");
    (Folder::new(&[("k.py", INSPECTED), ("helpers.py", helper), ("warpsmith.toml", &settings)]), python)
}

#[test]
fn each_stage_is_shown_with_the_lines_that_it_comes_from() {
    let (folder, python) = inspected();
    for (stage, target, part) in [
        ("ttir", "cuda:90", "tt.store %"),
        ("ttgir", "cuda:90", "#ttg.blocked"),
        ("llir", "cuda:90", "define "),
        ("ptx", "cuda:80", ".visible .entry k("),
        ("sass", "cuda:80", "/*0000*/"),
        ("amdgcn", "hip:gfx942", "amdgcn_target"),
    ] {
        let ran = folder.run(&["inspect", "k.py", "--kernel", "k", "--stage", stage, "--target", target]);
        assert_eq!(ran.code, 0, "{stage}: {}", ran.err);
        assert!(ran.out.replace("triton_gpu", "ttg").contains(part), "{stage}: {}", ran.out);
        let comment = if matches!(stage, "llir" | "amdgcn") { ";" } else { "//" };
        let is_load = |line: &str| line.trim() == format!("{comment} k.py:14: v = half(tl.load(x + i, mask=i < n))");
        assert!(ran.out.lines().any(is_load), "{stage}: {}", ran.out);
        // The assembly of older releases does not contain the place from which a helper was called, or no place at all.
        let half = format!("{comment} helpers.py:6: return x / 2 (called at k.py:14)");
        assert!(!matches!(stage, "ttir" | "ttgir" | "llir") || ran.out.contains(&half), "{stage}: {}", ran.out);
        assert!(ran.err.contains("as the signature says: x=*fp32:16 n=i32 B=64"), "{}", ran.err);
        assert!(ran.err.contains(&format!("{stage} of `k`, by Triton 3.")) && ran.err.contains(target), "{}", ran.err);
    }
    let raw = folder.run(&["inspect", "k.py", "--kernel", "k", "--stage", "ttir", "--raw", "--python", &python]);
    let file = folder.path().canonicalize().unwrap().join("k.py");
    assert!(raw.out.contains(&format!("loc(\"{}\":14:", file.display())), "{}", raw.out);
    assert!(!raw.out.contains("//"), "{}", raw.out);
}

#[test]
fn inspect_works_with_a_safe_python_path() {
    let (folder, _) = inspected();
    let arguments = ["inspect", "k.py", "--kernel", "k", "--target", "cuda:90", "--stage", "ttir", "--raw"];
    let ran = folder.run_with(&arguments, |command| _ = command.env("PYTHONSAFEPATH", "1"));
    assert!(ran.code == 0 && ran.out.contains("tt.func public @k"), "{}", ran.err);
}

#[test]
fn a_configuration_of_a_tuned_kernel_is_shown() {
    let (folder, _) = inspected();
    let show = |more: &[&str]| folder.run(&[&["inspect", "k.py", "--kernel", "tuned"], more].concat());
    for (more, size, warps) in [(&[][..], 64, 2), (&["--config", "1"], 64, 2), (&["--config", "2"], 256, 8)] {
        let ran = show(more);
        assert!(
            ran.err.contains(&format!("B={size}")) && ran.err.contains(&format!("num_warps={warps}")),
            "{}",
            ran.err
        );
        assert!(ran.out.contains(&format!("tensor<{size}x")), "{}", ran.out);
        assert!(ran.out.contains(&format!(".num-warps\" = {warps} : i32")), "{}", ran.out);
    }
    let none = show(&["--config", "3"]);
    assert!(none.code == 1 && none.err.contains("there are 2 ways to run `tuned`, counted from 1"), "{}", none.err);
}

#[test]
fn inspect_reports_why_a_kernel_cannot_be_shown() {
    let (folder, _) = inspected();
    folder.write("none.py", b"x = 1\n");
    for (arguments, code, words) in [
        (&["k.py"][..], 2, "several kernels; name one by --kernel: `k`, `tuned`, `broken`"),
        (&["k.py", "--kernel", "half"], 2, "k.py has no kernel `half`, only `k`, `tuned`, `broken`"),
        (&["none.py"], 2, "none.py has no kernel"),
        (&["gone.py"], 2, "gone.py cannot be read"),
        (&["k.py", "--kernel", "k", "--python", "/gone/python"], 2, "no Python with Triton was found"),
        (&["k.py", "--kernel", "k", "--target", "cuda:sm_90"], 2, "did you mean `cuda:90`?"),
        (&["k.py", "--kernel", "k", "--stage", "amdgcn"], 1, "there is no amdgcn for cuda:90, only ttir"),
        (&["k.py", "--kernel", "k", "--config", "2"], 1, "there is 1 way to run `k`, counted from 1"),
        (&["k.py", "--kernel", "broken"], 1, "`broken` does not compile: k.py:26: oops is not defined"),
    ] {
        let ran = folder.run(&[&["inspect"], arguments].concat());
        assert!(ran.code == code && ran.err.contains(words) && ran.out.is_empty(), "{arguments:?}: {}", ran.err);
    }
    folder.write("one.py", INSPECTED.split("\n\n\n@triton.autotune").next().unwrap().as_bytes());
    let only = folder.run(&["inspect", "one.py", "--stage", "ttir"]);
    assert!(only.code == 0 && only.out.contains("@k("), "{}", only.err);
}

#[test]
fn a_file_is_imported_only_where_that_is_allowed() {
    let python = std::env::var("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    // The constant that zlib computes cannot be extracted, and the marker file shows whether the file was imported.
    let own = "import zlib\nimport triton\nimport triton.language as tl\nfrom .sizes import SIZE\n\nP = \
        tl.constexpr(zlib.crc32(b'a') % 7 + SIZE)\nopen('ran', 'a').close()\n\n# warpsmith: signature x=*fp16\n@triton.jit\ndef \
        k(x):\n    tl.store(x + tl.arange(0, P), 1.0)\n";
    let settings = |allowed: bool| {
        format!("select = ['C']\npython = '{python}'\ncompiler.import-files = {allowed}\n").into_bytes()
    };
    let folder =
        Folder::new(&[("p/__init__.py", ""), ("p/sizes.py", "import zlib\nSIZE = zlib.crc32(b'b') % 3 + 1\n")]);
    folder.write("p/k.py", own.as_bytes());
    folder.write("warpsmith.toml", &settings(false));
    assert_eq!(folder.found(&["--compile"]), [""; 0]);
    assert!(!folder.path().join("ran").exists());
    folder.write("warpsmith.toml", &settings(true));
    assert_eq!(folder.found(&["--compile"]), ["p/k.py:12"]);
    assert!(folder.path().join("ran").exists());
    // The file has the same name as a module of the standard library.
    folder.write("types.py", own.replace("from .sizes", "from p.sizes").as_bytes());
    assert_eq!(folder.found(&["--compile"]), ["p/k.py:12"]);
}
