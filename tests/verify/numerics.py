#!/usr/bin/env python3
"""Checks the suite itself on a machine without a GPU, in Triton's interpreter.

    TRITON_INTERPRET=1 python tests/verify/numerics.py [--only TEXT]

The originals and the legitimate candidates (`ok_*`) must be as near to a reference in double precision as the original is;
those marked `# subtle: yes` must pass `torch.allclose(atol=5e-2, rtol=5e-2)` on random inputs of the recorded shape (with
fewer rows) and be wrong on at least one other input. Each runs in a process of its own. Ends with status 1 when one is not so.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import sys
import warnings

os.environ["TRITON_INTERPRET"] = "1"
warnings.simplefilter("ignore")

import torch

HERE = pathlib.Path(__file__).resolve().parent
HALF, SINGLE = torch.float16, torch.float32


def transposed(t):
    return t.mT.contiguous().mT


def sliced(t):
    wide = torch.zeros((*t.shape[:-1], 2 * t.shape[-1]), dtype=t.dtype)
    wide[..., ::2] = t
    return wide[..., ::2]


def with_value(t, value):
    t = t.clone()
    t.view(-1)[t.numel() // 2] = value
    return t


def far_rows():
    """Three rows a gigabyte of elements apart; the memory between is never touched."""
    torch.utils.deterministic.fill_uninitialized_memory = False
    x = torch.as_strided(torch.empty((2 << 30) + 64), (3, 40), (1 << 30, 1))
    return x.normal_()


def softmax_cases():
    x = torch.randn(16, 3000)
    yield "recorded", (x,)
    for shape in ((17, 3000), (1, 1), (3, 4099), (5, 127), (7, 1), (1, 2048)):
        yield f"{shape}", (torch.randn(shape) * 4,)
    yield "transposed", (transposed(torch.randn(9, 130)),)
    yield "sliced", (sliced(torch.randn(9, 130)),)
    yield "expanded", (torch.randn(1, 130).expand(9, 130),)
    yield "large", (torch.randn(8, 3000) * 1e4,)
    yield "sorted", (torch.randn(8, 3000).sort(dim=1).values,)
    yield "nan", (with_value(torch.randn(8, 300), float("nan")),)
    infinite = torch.randn(8, 2100)
    infinite[2], infinite[5, :1500] = -float("inf"), -float("inf")
    yield "infinite", (infinite,)
    yield "far", (far_rows(),)


def fused_cases():
    def make(m, n, scale=1.0):
        return (torch.randn(m, n, dtype=HALF) * scale, torch.randn(n, dtype=HALF) * scale, torch.randn(n, dtype=HALF), torch.randn(m, n, dtype=HALF))

    yield "recorded", make(16, 3072)
    for m, n in ((17, 3072), (1, 1), (5, 257), (1, 300), (9, 1)):
        yield f"({m}, {n})", make(m, n)
    yield "large", make(8, 300, 10.0)
    x, w, b, r = make(9, 130)
    yield "transposed", (transposed(x), w, b, transposed(r))
    yield "transposed residual", (x, w, b, transposed(r))
    yield "sliced", (sliced(x), sliced(w), sliced(b), sliced(r))
    yield "expanded", (x[:1].expand(9, 130), w, b, r)
    yield "nan", (with_value(x, float("nan")), w, b, r)
    yield "infinite", (with_value(x, -float("inf")), w, b, r)


def matmul_cases():
    make = lambda m, k, n: (torch.randn(m, k, dtype=HALF), torch.randn(k, n, dtype=HALF))
    yield "recorded", make(128, 2560, 192)
    for m, k, n in ((65, 40, 70), (1, 1, 1), (33, 129, 257), (7, 64, 130)):
        yield f"({m}, {k}, {n})", make(m, k, n)
    a, b = make(64, 96, 64)
    yield "transposed", (transposed(a), transposed(b))
    yield "transposed b", (a, transposed(b))
    yield "sliced", (sliced(a), sliced(b))
    yield "expanded", (a[:1].expand(64, 96), b)
    yield "large", (a * 1000, b * 100)
    yield "nan", (a, with_value(b, float("nan")))
    yield "infinite", (a, with_value(b, float("inf")))


def rotary_cases():
    def make(t, h, d):
        angles = torch.rand(t, d // 2) * 6.28
        return torch.randn(t, h, d, dtype=HALF), angles.cos(), angles.sin()

    yield "recorded", make(6, 24, 128)
    for t, h, d in ((5, 33, 12), (1, 1, 2), (3, 40, 100), (2, 7, 258)):
        yield f"({t}, {h}, {d})", make(t, h, d)
    q, cos, sin = make(5, 9, 20)
    yield "transposed", (transposed(q), transposed(cos), transposed(sin))
    yield "sliced", (sliced(q), cos, sin)
    yield "heads first", (q.transpose(0, 1).contiguous().transpose(0, 1), cos, sin)
    yield "expanded tables", (q, cos[:1].expand(5, 10), sin[:1].expand(5, 10))
    yield "nan", (with_value(q, float("nan")), cos, sin)


def rms_norm_cases():
    def make(m, n, scale=1.0):
        x, w = torch.randn(m, n, dtype=HALF) * scale, torch.randn(n, dtype=HALF)
        return x.requires_grad_(), w.requires_grad_(), torch.randn(m, n, dtype=HALF)

    yield "recorded", make(16, 4096)
    for m, n in ((17, 4096), (1, 1), (257, 3), (5, 3001)):
        yield f"({m}, {n})", make(m, n)
    yield "tiny", make(8, 100, 1e-4)
    yield "zeros", make(8, 100, 0.0)
    x, w, dy = make(9, 130)
    fresh = lambda t: t.detach().clone().requires_grad_()
    yield "transposed", (transposed(x.detach()).requires_grad_(), w, dy)
    yield "expanded gradient", (fresh(x), fresh(w), dy[:1].expand(9, 130))
    yield "transposed gradient", (fresh(x), fresh(w), transposed(dy))
    yield "nan", (with_value(x.detach(), float("nan")).requires_grad_(), fresh(w), dy)


def wide(t):
    return t.detach().double()


def fused_reference(x, w, b, residual):
    return (torch.nn.functional.gelu(wide(x) * wide(w) + wide(b)) + wide(residual),)


def rotary_reference(q, cos, sin):
    x, y = wide(q).chunk(2, dim=2)
    c, s = wide(cos)[:, None], wide(sin)[:, None]
    q = torch.cat((x * c - y * s, y * c + x * s), dim=2)
    return q, q


def rms_norm_reference(x, w, dy):
    x, w = wide(x).requires_grad_(), wide(w).requires_grad_()
    y = x * torch.rsqrt((x * x).mean(dim=1, keepdim=True) + 1e-6) * w
    return (y, *torch.autograd.grad(y, (x, w), wide(dy)))


def call_rms_norm(entry, x, w, dy):
    y = entry(x, w)
    return (y, *torch.autograd.grad(y, (x, w), dy))


def call_rotary(entry, q, cos, sin):
    # The clone keeps the strides.
    q = torch.empty_strided(q.shape, q.stride(), dtype=q.dtype).copy_(q)
    return entry(q, cos, sin), q


plain = lambda entry, *inputs: (entry(*inputs),)

ORIGINALS = {
    "softmax": ("softmax", softmax_cases, plain, lambda x: (torch.softmax(wide(x), dim=1),)),
    "fused": ("fused", fused_cases, plain, fused_reference),
    "matmul": ("matmul", matmul_cases, plain, lambda a, b: (wide(a) @ wide(b),)),
    "inplace": ("rotary_", rotary_cases, call_rotary, rotary_reference),
    "autograd": ("rms_norm", rms_norm_cases, call_rms_norm, rms_norm_reference),
}


def load(path, entry):
    spec = importlib.util.spec_from_file_location(f"file_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, entry)


def agrees(got, original, reference):
    """Whether a result is as near to the reference as the original's is, up to a factor and two units of its type."""
    if got is None or got.shape != original.shape or got.dtype != original.dtype or got.stride() != original.stride():
        return False
    got, original, narrow = wide(got), wide(original), got.dtype
    if not torch.equal(got.isnan(), original.isnan()) or not torch.equal(got.isinf(), original.isinf()):
        return False
    finite = original.isfinite()
    if not torch.equal(got[~finite & ~got.isnan()], original[~finite & ~original.isnan()]):
        return False
    got, original, reference = got[finite], original[finite], reference[finite]
    if got.numel() == 0:
        return True
    unit = torch.finfo(narrow).eps * reference.abs() + torch.finfo(narrow).tiny
    bound = 2.0 * (original - reference).abs() + 2.0 * unit
    bound = torch.maximum(bound, 2.0 * (original - reference).pow(2).mean().sqrt())
    excess = (got - reference).abs() / bound
    spread = ((got - reference) / unit).pow(2).mean() <= 4.0 * ((original - reference) / unit).pow(2).mean() + 0.25
    return bool((excess <= 3.0).all()) and bool(spread)


def judge(folder, path):
    """Prints what a file does on each case: `right`, `wrong` or what it raised; and whether it passes a loose comparison."""
    entry, cases, call, reference = ORIGINALS[folder]
    original, candidate = load(HERE / f"{folder}.py", entry), load(path, entry)
    loose = True
    for name, inputs in cases():
        torch.use_deterministic_algorithms(name != "far", warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = name != "far"
        expected = call(original, *inputs)
        try:
            got = call(candidate, *inputs)
        except Exception as error:
            print(json.dumps([name, f"{type(error).__name__}: {error}"[:200], loose]), flush=True)
            continue
        right = all(map(agrees, got, expected, reference(*inputs)))
        if name == "recorded":
            loose = all(torch.allclose(wide(g), wide(e), atol=5e-2, rtol=5e-2) for g, e in zip(got, expected))
        print(json.dumps([name, "right" if right else "wrong", loose]), flush=True)


def in_child(folder, path):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        torch.manual_seed(0)
        try:
            judge(folder, path)
        except BaseException as error:
            print(json.dumps(["ended", repr(error)[:300], True]), flush=True)
        os._exit(0)
    os.close(writer)
    lines = [json.loads(line) for line in os.fdopen(reader) if line.startswith("[")]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = {name: what for name, what, _ in lines}
    if status:
        seen["died"] = f"status {status}"
    return seen, all(loose for _, _, loose in lines)


def without_device():
    """What only a device could answer."""
    from triton.runtime import autotuner

    torch.set_num_threads(1)
    autotuner.Autotuner._bench = lambda self, *args, config, **meta: [1.0, 1.0, 1.0]
    torch.cuda.get_device_properties = lambda device: type("Properties", (), {"multi_processor_count": 4})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    without_device()
    failed = 0
    for folder in ORIGINALS:
        files = [HERE / f"{folder}.py", *sorted((HERE / folder).glob("*.py"))]
        for path in files:
            text = path.read_text()
            compile(text, str(path), "exec") if path.stem != "syntax_error" else None
            subtle = "\n# subtle: yes" in text
            legitimate = not text.startswith("# expect: refused")
            if not (subtle or legitimate) or options.only not in str(path):
                continue
            seen, loose = in_child(folder, path)
            others = [f"{name}: {what}" for name, what in seen.items() if what != "right"]
            fine = bool(seen) and (not others if legitimate else loose and others and seen.get("recorded") is not None)
            failed += not fine
            print("ok  " if fine else "FAIL", f"{folder}/{path.stem}", "legitimate" if legitimate else "subtle", "" if loose else "NOT LOOSE", "; ".join(others), flush=True)
    print(f"{failed} not as they should be")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
