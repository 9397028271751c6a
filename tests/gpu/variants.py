"""Candidates made by the hundred: variants of a matrix product, of an entry of five kernels, and ones that go wrong."""

import itertools
import pathlib
import random

ROOT = pathlib.Path(__file__).resolve().parents[2]


def matmul(folder, count):
    """Variants of `examples/matmul.py` that fit into a processor's memory; gives the original."""
    text = (ROOT / "examples/matmul.py").read_text()
    blocks = "BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, GROUP_M=8,\n        num_warps=4,"
    assert text.count(blocks) == 1
    fits = lambda m, n, k, stages: m * n <= 128 * 256 and (m + n) * k * 2 * stages <= 200 << 10
    every = [
        (m, n, k, group, warps, stages)
        for m, n, k, group, warps, stages in itertools.product((32, 64, 128, 256), (32, 64, 128, 256), (32, 64), (1, 2, 4, 8), (4, 8), (2, 3, 4))
        if fits(m, n, k, stages) and m * n // (warps * 32) <= 128
    ]
    chosen = random.Random(5).sample(every, count)
    for number, (m, n, k, group, warps, stages) in enumerate(chosen):
        changed = f"BLOCK_M={m}, BLOCK_N={n}, BLOCK_K={k}, GROUP_M={group},\n        num_warps={warps}, num_stages={stages},"
        (folder / f"matmul_{number:03}.py").write_text(text.replace(blocks, changed))
    return ROOT / "examples/matmul.py"


BLOCK = '''"""A feed-forward block of five kernel launches: norm, product, activation, product, sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(x_ptr, w_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / n_cols + 1e-6) * w
    tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    cols = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        ks = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows * K + ks[None, :], mask=(rows < M) & (ks[None, :] < K), other=0.0)
        b = tl.load(b_ptr + ks[:, None].to(tl.int64) * N + cols, mask=(ks[:, None] < K) & (cols < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows * N + cols, acc.to(c_ptr.dtype.element_ty), mask=(rows < M) & (cols < N))


@triton.jit
def activation_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32)
    y = x * tl.sigmoid(x)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=offsets < n)


@triton.jit
def sum_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=offsets < n), mask=offsets < n)


def product(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = (triton.cdiv(M, {bm}), triton.cdiv(N, {bn}))
    product_kernel[grid](a, b, c, M, N, K, BM={bm}, BN={bn}, BK={bk}, num_warps={warps}, num_stages={stages})
    return c


def block(x: torch.Tensor, w: torch.Tensor, up: torch.Tensor, down: torch.Tensor) -> torch.Tensor:
    if w.shape != x.shape[1:] or up.shape[0] != x.shape[1] or down.shape != up.shape[::-1] or x.numel() == 0:
        raise ValueError("shapes do not fit")
    x, w, up, down = (t.contiguous() for t in (x, w, up, down))
    n_rows, n_cols = x.shape
    normal = torch.empty_like(x)
    norm_kernel[(n_rows,)](x, w, normal, n_cols, BLOCK=triton.next_power_of_2(n_cols), num_warps={row_warps})
    wide = product(normal, up)
    active = torch.empty_like(wide)
    activation_kernel[(triton.cdiv(wide.numel(), {each}),)](wide, active, wide.numel(), BLOCK={each})
    narrow = product(active, down)
    out = torch.empty_like(x)
    sum_kernel[(triton.cdiv(x.numel(), {each}),)](x, narrow, out, x.numel(), BLOCK={each})
    return out


if __name__ == "__main__":
    x, w = torch.randn((2048, 1024), device="cuda", dtype=torch.float16), torch.randn(1024, device="cuda", dtype=torch.float16)
    up, down = (torch.randn(shape, device="cuda", dtype=torch.float16) / 32 for shape in ((1024, 3072), (3072, 1024)))
    print(tuple(block(x, w, up, down).shape))
'''


def block(folder, original, count):
    """Variants of an entry of five launches; `original` is written as well."""
    plain = {"bm": 64, "bn": 64, "bk": 32, "warps": 4, "stages": 2, "row_warps": 4, "each": 1024}
    original.write_text(BLOCK.format(**plain))
    choices = {"bm": (64, 128), "bn": (64, 128), "bk": (32, 64), "warps": (4, 8), "stages": (2, 3), "row_warps": (4, 8), "each": (512, 2048)}
    every = [dict(zip(choices, values)) for values in itertools.product(*choices.values())]
    for number, values in enumerate(random.Random(5).sample(every, count)):
        (folder / f"block_{number:03}.py").write_text(BLOCK.format(**values))


SMALL = '''import torch
import triton
import triton.language as tl
{top}

@triton.jit
def axpy_kernel(x_ptr, y_ptr, out_ptr, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = {mask}
    x = tl.load(x_ptr + offsets{far}, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    {kernel}
    tl.store(out_ptr + offsets, {value}, mask=mask)


def axpy(x: torch.Tensor, y: torch.Tensor, alpha: float) -> torch.Tensor:
    if x.shape != y.shape or x.dim() != 1:
        raise ValueError("shapes do not fit")
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty_like(x)
    {entry}
    axpy_kernel[(triton.cdiv(out.numel(), {block}),)](x, y, out, out.numel(), alpha, BLOCK={block}, num_warps={warps})
    return out
{bottom}'''
PLAIN = {"top": "", "mask": "offsets < n", "far": "", "kernel": "pass", "value": "x * alpha + y", "entry": "pass", "block": 512, "warps": 4, "bottom": ""}
MAIN = '''

if __name__ == "__main__":
    x, y = (torch.randn(1_000_003, device="cuda") for _ in range(2))
    print(axpy(x, y, 0.5).sum().item())
'''
WRONG = [
    {"value": "x * alpha - y"}, {"value": "x + y"}, {"value": "x * alpha"}, {"value": "x"}, {"mask": "offsets < n - 1"}, {"mask": "offsets < n // 2"},
    {"value": "(x * alpha + y).to(tl.float16)"}, {"entry": "return out"}, {"entry": "y.mul_(2.0)"}, {"entry": "out = y"}, {"entry": "out = out.half()"},
    {"entry": "return torch.add(y, x, alpha=alpha)"},
]
CRASHING = [
    {"entry": "import os; os._exit(3)"}, {"entry": "import os; os._exit(0)"}, {"entry": "import os; os.abort()"}, {"entry": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"},
    {"entry": "import ctypes; ctypes.string_at(0)"}, {"entry": "raise RuntimeError('broken')"}, {"entry": "raise SystemExit(0)"}, {"entry": "raise KeyboardInterrupt"},
    {"entry": "raise MemoryError"}, {"top": "import no_such_module\n"}, {"top": "raise SystemExit(0)\n"}, {"top": "import os; os.abort()\n"}, {"top": "def broken(:\n"},
    {"value": "x * beta + y"}, {"block": 500}, {"value": "tl.no_such(x)"}, {"warps": 3}, {"bottom": "\ndel axpy\n"}, {"bottom": "\naxpy = None\n"},
    {"entry": "f = lambda f: f(f); f(f)"},
]
HANGING = [
    {"entry": "while True: pass"}, {"entry": "import time; time.sleep(10_000)"}, {"top": "import time; time.sleep(10_000)\n"},
    {"kernel": "while tl.load(x_ptr, volatile=True) == tl.load(x_ptr, volatile=True): n += 1"}, {"entry": "import signal; signal.pause()"},
]
CORRUPTING = [{"far": " + (1 << 44)"}, {"far": " - (1 << 44)"}, {"kernel": "tl.inline_asm_elementwise('trap; mov.u32 $0, $1;', '=r,r', [tl.program_id(0)], dtype=tl.int32, is_pure=False, pack=1)"}]


def robust(folder, original, count, seed=5):
    """`count` candidates of which a fifth crash, a twentieth hang, a fiftieth corrupt the context; what each is, by name."""
    original.write_text(SMALL.format(**PLAIN) + MAIN)
    random_ = random.Random(seed)
    parts = (("crashing", CRASHING, count // 5), ("hanging", HANGING, count // 20), ("corrupting", CORRUPTING, count // 50), ("wrong", WRONG, count // 5))
    kinds = [(kind, changes[(number + seed * share) % len(changes)]) for kind, changes, share in parts for number in range(share)]
    kinds += [("right", {})] * (count - len(kinds))
    random_.shuffle(kinds)
    made = {}
    for number, (kind, change) in enumerate(kinds):
        shape = {"block": random_.choice((256, 512, 1024, 2048)), "warps": random_.choice((2, 4, 8))}
        name = f"{kind}_{number:04}"
        (folder / f"{name}.py").write_text(f"# {number}\n" + SMALL.format(**{**PLAIN, **shape, **change}))
        made[name] = kind
    return made
