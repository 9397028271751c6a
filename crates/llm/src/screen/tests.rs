use super::*;

const ORIGINAL: &str = "\
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def run(x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y
";

fn of(added: &str) -> Vec<ObjectionKind> {
    let mut found: Vec<ObjectionKind> =
        screen(ORIGINAL, &format!("{ORIGINAL}\n\n{added}\n")).into_iter().map(|one| one.kind).collect();
    found.sort();
    found.dedup();
    found
}

#[test]
fn code_that_no_kernel_needs_is_objected_to() {
    use ObjectionKind::*;
    for (added, expected) in [
        ("import os", Outside),
        ("import time", Import),
        ("from os import environ", Environment),
        ("import requests as r", Outside),
        ("import ctypes", Outside),
        ("import threading", Concurrency),
        ("import sys", Inspection),
        ("from . import helper", Import),
        ("from torch import *", Import),
        ("from torch.utils.cpp_extension import load_inline", Outside),
        ("from torch import os", Outside),
        ("__import__('os')", Dynamic),
        ("f = eval", Dynamic),
        ("def f(x, e=exec):\n    e(x)", Dynamic),
        ("getattr(torch, 'o' + 's')", Dynamic),
        ("getattr(run, '__globals__')", Dynamic),
        ("g = getattr", Dynamic),
        ("run.__globals__['run'] = 1", Dynamic),
        ("().__class__.__subclasses__()", Dynamic),
        ("def f(m): ...\nf(torch)", Dynamic),
        ("for m in [torch, triton]:\n    pass", Dynamic),
        ("class A:\n    def __getattr__(self, name): ...", Dynamic),
        ("open('x', 'w')", Outside),
        ("torch.os.system('ls')", Outside),
        ("t = torch\nt.load('x')", Outside),
        ("torch.hub.load('x', 'y')", Outside),
        ("tl.math.extern_elementwise('a', 'b')", Outside),
        ("def f(x):\n    return x.data_ptr()", Address),
        ("def f(x, seen):\n    return seen[id(x)]", Address),
        ("def f(x):\n    global LAST\n    LAST = x", Keeps),
        ("CACHE = {}\ndef f(x):\n    CACHE[x.shape] = x\n    return x", Keeps),
        ("CACHE = []\ndef f(x):\n    CACHE.append(x)", Keeps),
        ("def f(x, cache={}):\n    cache[1] = x", Keeps),
        ("def f(x, buffer=torch.empty(3)):\n    return buffer", Keeps),
        ("BUFFER = torch.zeros(3)", Keeps),
        ("def f(x):\n    run.last = x", Keeps),
        ("class A:\n    def forward(self, x):\n        self.y = x", Keeps),
        ("def make():\n    last = [0]\n    def f(x):\n        last[0] = x\n    return f", Keeps),
        ("import functools\n@functools.lru_cache(maxsize=None)\ndef f(x):\n    return x", Keeps),
        ("from functools import cache as c\n@c\ndef f(n: int):\n    return torch.empty(n)", Keeps),
        ("def f(x):\n    x.last = x", Keeps),
        ("import functools\ng = functools.lru_cache(run)", Keeps),
        ("(t := torch).load('x')", Dynamic),
        ("(torch or 1).load('x')", Dynamic),
        ("class A:\n    t = torch", Dynamic),
        ("class A:\n    import torch", Dynamic),
        ("class A:\n    pass\na = A()\na.t = (torch)", Dynamic),
        ("import math as t\nt = torch\nt.load('x')", Outside),
        ("\u{ff45}\u{ff56}\u{ff41}\u{ff4c}('1')", Dynamic),
        ("# a comment\rimport os", Dynamic),
        ("x = (", Dynamic),
        ("T = type('T', (torch.Tensor,), {})", Dynamic),
        ("def f(a):\n    return a.b.os.system('ls')", Outside),
        ("def f():\n    e = torch.cuda\n    e.Event = 1", Patch),
        ("torch.cuda.Event = run", Patch),
        ("torch.allclose = lambda *a: True", Patch),
        ("def f():\n    triton.testing.do_bench = run", Patch),
        ("setattr(torch.cuda, 'synchronize', run)", Patch),
        ("torch.backends.cuda.matmul.allow_tf32 = True", Patch),
        ("torch.set_default_dtype(torch.float32)", Patch),
        ("class T(torch.Tensor): ...", Patch),
        ("(torch.cuda.Event, x) = 1, 2", Patch),
        ("e = torch.cuda\ne.Event = 1", Patch),
        ("torch.os.environ['A'] = 'b'", Environment),
        ("s = torch.cuda.Stream()", Concurrency),
        ("from torch.cuda import stream", Concurrency),
        ("def f(x):\n    x.register_hook(run)", Concurrency),
        ("def f(g):\n    return g.gi_frame.f_back", Inspection),
        ("def f(x):\n    return x.half()", Precision),
        ("@triton.jit\ndef k(a, b):\n    return tl.dot(a, b, input_precision='tf32')", Precision),
        ("def f(x):\n    return torch.softmax(x, 1)", Fallback),
        ("from torch.nn import functional as F\ndef f(x):\n    return F.softmax(x, 1)", Fallback),
        ("def f(x, y):\n    return x @ y", Fallback),
        ("def f(x):\n    return x.sum(0)", Fallback),
    ] {
        let found = of(added);
        assert!(found.contains(&expected), "{added}: {found:?}");
    }
}

#[test]
fn ordinary_rewrites_are_let_pass() {
    for added in [
        "import math\nfrom typing import Optional\nimport functools",
        "from triton.language.extra import libdevice",
        "HAS = hasattr(tl, 'make_tensor_descriptor')\nf = getattr(tl, 'dot_scaled', None)",
        "@functools.lru_cache\ndef count(device: int):\n    return torch.cuda.get_device_properties(device).multi_processor_count",
        "def alloc(size, alignment, stream):\n    return torch.empty(size, dtype=torch.int8, device='cuda')\ntriton.set_allocator(alloc)",
        "def f(x):\n    return x.data_ptr() % 16 == 0",
        "SIZES = {64: 4, 128: 8}\ndef f(n):\n    return SIZES[n]",
        "def f(ctx, x):\n    ctx.n = x.shape[0]\n    ctx.save_for_backward(x)",
        "class A(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.n = 3",
        "def f(x):\n    sizes = []\n    sizes.append(1)\n    x[0] = 1\n    return sizes",
        "@triton.autotune(configs=[triton.Config({'BLOCK': b}, num_warps=w) for b in (1, 2) for w in (4,)], key=['n'])\n@triton.jit\ndef k(x, n, BLOCK: tl.constexpr):\n    id = tl.program_id(0)\n    acc = tl.zeros((BLOCK,), tl.float32)\n    acc += tl.sum(acc) + x.sum(0)\n    tl.store(x + id, acc)",
        "def f(input, dim):\n    return input.contiguous().view(-1, dim)",
        "def f(x):\n    grid = lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)\n    kernel[grid](x, x, 1, BLOCK=2)",
        "if __name__ == '__main__':\n    x = torch.ones(3)\n    print(run(x))",
        "try:\n    import triton.tools\nexcept ImportError:\n    triton = None",
    ] {
        let found = screen(ORIGINAL, &format!("{ORIGINAL}\n\n{added}\n"));
        assert_eq!(found, [], "{added}");
    }
}

#[test]
fn texts_that_python_reads_differently_are_refused() {
    for encoding in ["# -*- coding: utf-7 -*-", "#!python\n# vim: set fileencoding=utf_7 :"] {
        assert_eq!(screen(ORIGINAL, &format!("{encoding}\n{ORIGINAL}"))[0].kind, ObjectionKind::Dynamic, "{encoding}");
    }
    assert_eq!(screen(ORIGINAL, &format!("# -*- coding: utf-8 -*-\n{ORIGINAL}")), []);
    // Names that are assigned in reverse order, and in a cycle.
    let chain: String = (0..40).map(|at| format!("a{at} = a{}\n", at + 1)).collect();
    let chained = format!("{ORIGINAL}\n{chain}a40 = torch\na0.load('x')\n");
    assert_eq!(screen(ORIGINAL, &chained)[0].kind, ObjectionKind::Outside);
    assert_eq!(screen(ORIGINAL, &format!("{ORIGINAL}\na = torch\na = a.b\n"))[0].kind, ObjectionKind::Dynamic);
}

#[test]
fn actions_of_the_original_are_not_objected_to() {
    let original = format!(
        "import os\n{ORIGINAL}\nCACHE = {{}}\ndef f(x):\n    CACHE[1] = os.environ.get('A')\n    return x.half()\n"
    );
    assert_eq!(screen(&original, &original), []);
    let twice = format!("{original}\ndef g(x):\n    CACHE[1] = os.environ.get('A')\n");
    assert_eq!(screen(&original, &twice), []);
    let more = format!("{original}\ndef g(x):\n    os.remove('x')\n    return x.half().half()\n");
    let found: Vec<(ObjectionKind, bool)> =
        screen(&original, &more).into_iter().map(|one| (one.kind, one.refuses)).collect();
    assert_eq!(found, [(ObjectionKind::Outside, true), (ObjectionKind::Precision, false)]);
}

#[test]
fn an_objection_is_one_sentence() {
    let candidate = format!("{ORIGINAL}\nx = open(\n    '''a\n`b`''')\n");
    let [only] = &screen(ORIGINAL, &candidate)[..] else { panic!("one objection") };
    assert_eq!(only.line, 17);
    assert_eq!(only.text, "line 17 uses files, programs, the network or native code: `open( '''a 'b'''')`");
}

#[test]
fn example_kernels_have_no_objections() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut files = Vec::new();
    for folder in ["examples", "tests/gpu/optimize"] {
        let names = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        files.extend(names.filter(|path| path.extension().is_some_and(|end| end == "py")));
    }
    assert!(files.len() > 20);
    let texts: Vec<String> = files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for (path, text) in files.iter().zip(&texts) {
        assert_eq!(screen(text, text), [], "{}", path.display());
        // Each file as a candidate for another original.
        let refusing: Vec<Objection> = screen(ORIGINAL, text).into_iter().filter(|one| one.refuses).collect();
        assert_eq!(refusing, [], "{}", path.display());
    }
}

#[test]
fn deep_and_long_texts_take_no_time() {
    let begin = std::time::Instant::now();
    let deep = format!("x = {}1{}\n", "f(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(screen(ORIGINAL, &deep)[0].kind, ObjectionKind::Dynamic);
    let long = format!("{ORIGINAL}\n{}", "x.y = open(torch.z)\n".repeat(10_000));
    assert!(!screen(ORIGINAL, &long).is_empty());
    let many: String = (0..10_000).map(|at| format!("a{at} = a{}\n", at + 1)).collect();
    assert_eq!(screen(ORIGINAL, &many), []);
    let functions: String = (0..5_000).map(|at| format!("def f{at}(x):\n    y = x\n    return y.a\n")).collect();
    assert_eq!(screen(ORIGINAL, &functions), []);
    assert!(begin.elapsed().as_secs() < 30, "{:?}", begin.elapsed());
}
