use protocol::Workload;

use super::*;
use crate::candidate::Candidate;

/// The results of fusing in a file whose function `run` launches `first`.
fn turned(text: &str, first: &str) -> Vec<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, text, first, &workload).unwrap();
    let turns = FusedLaunches.turns(&subject, &mut Rng::new(1));
    turns.into_iter().map(|turn| apply_edits(text, &turn.edits)).collect()
}

/// The text after the original kernels, where there is exactly one way to fuse.
fn behind(text: &str, first: &str, kernels: &str) -> String {
    let all = turned(text, first);
    let [new] = all.as_slice() else { panic!("{} ways", all.len()) };
    new.strip_prefix(kernels).unwrap_or_else(|| panic!("{new}")).to_owned()
}

const ELEMENTS: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)

@triton.jit
def relu_kernel(x_ptr, y_ptr, n_elements, scale, SIZE: tl.constexpr):
    \"\"\"relu(x) * scale\"\"\"
    start = tl.program_id(axis=0) * SIZE
    offsets = start + tl.arange(0, SIZE)
    inside = offsets < n_elements
    # In fp32.
    x = tl.load(x_ptr + offsets, mask=inside).to(tl.float32)
    y = tl.maximum(x, 0.0) * scale
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)
";

const RUN: &str = "
def run(x, y):
    n = x.numel()
    total = torch.empty_like(x)
    add_kernel[(triton.cdiv(n, 512),)](x, y, total, n, BLOCK=512, num_warps=8)
    out = torch.empty_like(x)  # of the same size
    relu_kernel[lambda meta: (triton.cdiv(n, meta[\"SIZE\"]),)](total, out, n, 2.0, SIZE=512)
    return out
";

#[test]
fn kernels_with_the_same_tiles_are_concatenated() {
    let expected = "

@triton.jit
def add_relu_fused(x_ptr, y_ptr, n, y_ptr_2, scale, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    total = (x + y).to(x_ptr.dtype.element_ty)

    # In fp32.
    x_2 = total.to(tl.float32)
    y_2 = tl.maximum(x_2, 0.0) * scale
    tl.store(y_ptr_2 + offs, y_2.to(y_ptr_2.dtype.element_ty), mask=mask)

def run(x, y):
    n = x.numel()
    out = torch.empty_like(x)  # of the same size
    add_relu_fused[(triton.cdiv(n, 512),)](x, y, n, out, 2.0, BLOCK=512, num_warps=8)
    return out
";
    let text = format!("{ELEMENTS}{RUN}");
    assert_eq!(behind(&text, "add_kernel", ELEMENTS), expected);
    assert!(turned(&text, "relu_kernel").is_empty(), "nothing comes behind it");
}

#[test]
fn intermediate_results_that_are_used_later_are_stored() {
    let text = format!("{ELEMENTS}{RUN}").replace("return out", "return total, out");
    let new = behind(&text, "add_kernel", ELEMENTS);
    let stored = "    total = (x + y).to(out_ptr.dtype.element_ty)\n    tl.store(out_ptr + offs, total, mask=mask)\n";
    assert!(new.contains(stored), "{new}");
    assert!(new.contains("](x, y, total, n, out, 2.0, BLOCK=512") && new.contains("total = torch.empty"), "{new}");
}

#[test]
fn kernels_with_different_tiles_are_fused_with_the_tiles_of_either() {
    let text = format!("{ELEMENTS}{RUN}").replace("SIZE=512", "SIZE=1024").replace("n, 2.0", "n // 2, 2.0");
    let all = turned(&text, "add_kernel");
    let [of_first, of_second] = all.as_slice() else { panic!("{all:?}") };
    // The second kernel stores half of the elements.
    let own = "    inside = (mask & (offs < n_elements))\n    # In fp32.\n    x_2 = total.to(tl.float32)\n";
    assert!(of_first.contains(own) && of_first.contains("](x, y, n, out, n // 2, 2.0, BLOCK=512, num_warps=8)"));
    let own = "    x_2 = tl.load(x_ptr_2 + offsets, mask=inside)\n";
    assert!(of_second.contains(own), "{of_second}");
    assert!(of_second.contains("[lambda meta: (triton.cdiv(n, meta[\"SIZE\"]),)]("), "{of_second}");
}

const ROWS: &str = "
@triton.jit
def norm_kernel(x_ptr, w_ptr, y_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * stride + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)
";

const NORM: &str = "
def run(x, y, w):
    rows, cols = x.shape
    total = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 512),)](x, y, total, x.numel(), BLOCK=512)
    out = torch.empty_like(x)
    norm_kernel[(rows,)](total, w, out, total.stride(0), cols, 1e-6, BLOCK=triton.next_power_of_2(cols))
    return out, total
";

#[test]
fn an_elementwise_kernel_is_fused_before_a_norm() {
    let kernels = format!("{ELEMENTS}{ROWS}");
    let expected = "

@triton.jit
def add_norm_fused(w_ptr, y_ptr, stride, n_cols, eps, x_ptr_2, y_ptr_2, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    offs = row * stride + cols
    x_2 = tl.load(x_ptr_2 + offs, mask=mask)
    y = tl.load(y_ptr_2 + offs, mask=mask)
    total = (x_2 + y).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + offs, total, mask=mask)
    x = tl.where(mask, total, 0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + row * stride + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=mask)

def run(x, y, w):
    rows, cols = x.shape
    total = torch.empty_like(x)
    out = torch.empty_like(x)
    add_norm_fused[(rows,)](
        w, out, total.stride(0), cols, 1e-6, x, y, total,
        BLOCK=triton.next_power_of_2(cols),
    )
    return out, total
";
    let new = behind(&format!("{kernels}{NORM}"), "add_kernel", &kernels);
    // In the reverse order the other kernel keeps the name of its offsets.
    assert_eq!(new.replace("offs_", "offs"), expected);
}

#[test]
fn an_elementwise_kernel_is_fused_after_a_product() {
    let product = "
@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=rk[None, :] < K, other=0.0)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=rk[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + rm[:, None] * N + rn[None, :]
    tl.store(c_ptrs, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))
";
    let host = "
def run(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=torch.float32)
    product_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, c, M, N, K, 64, 64, 32)
    out = torch.empty((M, N), device=a.device, dtype=a.dtype)
    relu_kernel[(triton.cdiv(M * N, 512),)](c, out, M * N, 2.0, SIZE=512)
    return out
";
    let kernels = format!("{ELEMENTS}{product}");
    let new = behind(&format!("{kernels}{host}"), "product_kernel", &kernels);
    let expected = "        acc = tl.dot(a, b, acc)
    c = acc.to(tl.float32)
    offsets_ = rm[:, None] * N + rn[None, :]
    mask_ = (rm[:, None] < M) & (rn[None, :] < N)
    # In fp32.
    x = c.to(tl.float32)
    y = tl.maximum(x, 0.0) * scale
    tl.store(y_ptr + offsets_, y.to(y_ptr.dtype.element_ty), mask=mask_)

def run(a, b):
    (M, K), N = a.shape, b.shape[1]
    out = torch.empty((M, N), device=a.device, dtype=a.dtype)
    product_relu_fused[(triton.cdiv(M, 64), triton.cdiv(N, 64))](a, b, M, N, K, out, 2.0, BM=64, BN=64, BK=32)
    return out
";
    assert!(new.ends_with(expected), "{new}");
}

#[test]
fn unsupported_pairs_of_launches_are_not_fused() {
    let text = format!("{ELEMENTS}{RUN}");
    for (old, new) in [
        // Something else happens between the launches, or the memory has another name.
        ("    out = torch", "    x += 1\n    out = torch"),
        ("    out = torch", "    total.relu_()\n    out = torch"),
        ("    out = torch", "    flat = total.view(-1)\n    out = torch"),
        ("    out = torch", "    n = 2\n    out = torch"),
        // Other code may use the written memory.
        ("    total = torch.empty_like(x)\n", "    total = y\n"),
        ("    out = torch.empty_like(x)  # of the same size\n", "    out = x\n"),
        // Elements beside the written ones are read.
        ("tl.load(x_ptr + offsets, mask=inside)", "tl.load(x_ptr + offsets, mask=inside) + tl.load(x_ptr)"),
        (
            "tl.store(out_ptr + offs, x + y",
            "tl.store(out_ptr + offs, x, mask=mask)\n    tl.store(out_ptr + offs, x + y",
        ),
        ("tl.store(out_ptr + offs, x + y", "tl.atomic_add(out_ptr + offs, x + y"),
        ("    \"\"\"relu", "    if n_elements == 0:\n        return\n    \"\"\"relu"),
        ("@triton.jit\ndef relu", "@triton.heuristics({\"SIZE\": lambda args: 512})\n@triton.jit\ndef relu"),
        ("relu_kernel[lambda", "other_kernel[lambda"),
        ("(total, out, n, 2.0, SIZE=512)", "(*args)"),
    ] {
        assert!(text.contains(old), "{old}");
        assert!(turned(&text.replace(old, new), "add_kernel").is_empty(), "{new}");
    }
    // Only plain additions to a pointer are understood.
    let other = format!("{ELEMENTS}{ROWS}{NORM}");
    for moved in ["    for i in range(3):\n        x_ptr += 1\n", "    x_ptr -= stride\n", "    x_ptr = x_ptr + 1\n"] {
        let moved = other.replace("    x = tl.load(x_ptr + cols", &format!("{moved}    x = tl.load(x_ptr + cols"));
        assert!(turned(&moved, "add_kernel").is_empty(), "{moved}");
    }
}
