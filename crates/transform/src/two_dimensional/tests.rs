use protocol::Workload;

use super::*;
use crate::candidate::Candidate;
use crate::turned::turned_by;

fn turned(text: &str) -> Vec<String> {
    turned_by(&TwoDimensional, text)
}

fn rewritten(text: &str) -> Option<String> {
    turned(text).into_iter().next()
}

const TRANSPOSE: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, y_ptr, n, N, stride_r, stride_c, BLOCK: tl.constexpr):
    '''The other way round.'''
    pid = tl.program_id(axis=0)
    start = pid * BLOCK  # the first
    offs = start + tl.arange(0, BLOCK)  # all of them
    mask = offs < n
    row = offs // N
    col = offs % N
    x = tl.load(x_ptr + row * stride_r + col * stride_c, mask=mask, other=0.0)
    tl.store(y_ptr + offs, x * 2.0, mask=mask)

def run(x):
    y = torch.empty((x.shape[1], x.shape[0]), device=x.device, dtype=x.dtype)
    n = y.numel()
    grid = (triton.cdiv(n, 1024),)
    k[grid](x, y, n, y.shape[1], x.stride(1), x.stride(0), BLOCK=1024, num_warps=4)
    return y
";

#[test]
fn a_transpose_reads_and_writes_tiles() {
    let expected = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, y_ptr, n, N, stride_r, stride_c, BLOCK_R: tl.constexpr, BLOCK_C: tl.constexpr):
    '''The other way round.'''
    pid = tl.program_id(axis=0)
    tiles_across = tl.cdiv(N, BLOCK_C)
    rows = pid // tiles_across * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    columns = pid % tiles_across * BLOCK_C + tl.arange(0, BLOCK_C)[None, :]
    in_rows = rows <= (n - 1) // N
    in_columns = (columns < N) & (columns < n)
    in_tile = in_rows & in_columns & (columns < n - rows * N)
    offs = rows * N + columns  # all of them
    mask = in_tile
    row = rows
    col = columns
    x = tl.load(x_ptr + row * stride_r + col * stride_c, mask=mask, other=0.0)
    tl.store(y_ptr + offs, x * 2.0, mask=mask)

def run(x):
    y = torch.empty((x.shape[1], x.shape[0]), device=x.device, dtype=x.dtype)
    n = y.numel()
    grid = (triton.cdiv(n, 1024),)
    k[lambda meta: (triton.cdiv(triton.cdiv(n, max(y.shape[1], 1)), meta[\"BLOCK_R\"]) * triton.cdiv(y.shape[1], meta[\"BLOCK_C\"]),)](x, y, n, y.shape[1], x.stride(1), x.stride(0), BLOCK_R=32, BLOCK_C=32, num_warps=4)
    return y
";
    let all = turned(TRANSPOSE);
    assert_eq!(all[0], expected);
    assert_eq!(all.len(), TILES.len());
    assert!(all[3].contains("BLOCK_R=64, BLOCK_C=16, num_warps"), "{}", all[3]);
    assert!(turned(expected).is_empty(), "once is enough");
}

const BIAS: &str = "import triton
import triton.language as tl

@triton.jit
def k(x_ptr, bias_ptr, scale_ptr, y_ptr, M, N: tl.constexpr, BLOCK: tl.constexpr = 512):
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < M * N)
    bias = tl.load(bias_ptr + offs % N, offs < M * N)
    scale = tl.load(scale_ptr + offs // N)
    if N > 8:
        x = tl.where(x > 0, x, 0.0)
    tl.store(y_ptr + offs, (x + bias) * scale, mask=(offs < M * N) & (x > 1))

def run(x, bias, scale, y):
    M, N = x.shape
    k[lambda meta: ((x.numel() + meta['BLOCK'] - 1) // meta['BLOCK'], 1)](x, bias, scale, y, M, N, 512)
";

#[test]
fn values_of_a_row_or_column_are_loaded_once() {
    let text = rewritten(BIAS).unwrap();
    assert_eq!(rewritten(&BIAS.replace("M * N", "M *\n        N")), None, "what is said again stands on a line");
    for line in [
        "N: tl.constexpr, BLOCK_R: tl.constexpr = 32, BLOCK_C: tl.constexpr = 32):\n    tiles_across = tl.cdiv(N, BLOCK_C)\n",
        "    rows = tl.program_id(0).to(tl.int64) // tiles_across * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]\n",
        "    in_rows = rows <= (M * N - 1) // N\n    in_columns = (columns < N) & (columns < M * N)\n",
        "    in_tile = in_rows & in_columns & (columns < M * N - rows * N)\n    offs = rows * N + columns\n",
        "    x = tl.load(x_ptr + offs, mask=in_tile)\n",
        "    bias = tl.load(bias_ptr + columns, in_columns)\n",
        "    scale = tl.load(scale_ptr + rows, mask=in_rows)\n",
        "    tl.store(y_ptr + offs, (x + bias) * scale, mask=(in_tile) & (x > 1))\n",
        "    k[lambda meta: (triton.cdiv(triton.cdiv(x.numel(), max(N, 1)), meta[\"BLOCK_R\"]) * triton.cdiv(N, meta[\"BLOCK_C\"]), 1)](x, bias, scale, y, M, N, 32, 32)\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn equivalent_ways_to_compute_offsets_are_supported() {
    for (old, new) in [
        ("start + tl.arange(0, BLOCK)", "tl.arange(0, BLOCK) + start"),
        ("start = pid * BLOCK", "start = BLOCK * pid"),
        ("start = pid * BLOCK", "start = (pid * BLOCK).to(tl.int64)"),
        ("start + tl.arange(0, BLOCK)", "(start + tl.arange(0, BLOCK)).to(tl.int64)"),
        ("row = offs // N", "row = offs // N % 7 + offs // stride_r"),
        ("row = offs // N", "row = offs // 7"),
        ("triton.cdiv(n, 1024)", "triton.cdiv(y.numel(), 1024)"),
        ("triton.cdiv(n, 1024)", "(n + 1023 + 1 - 1) // 1024"),
        ("(triton.cdiv(n, 1024),)", "lambda META: (triton.cdiv(n, META['BLOCK']),)"),
        ("n = y.numel()", "n = x.shape[0] * x.shape[1]"),
        ("mask=mask, other=0.0", "mask=mask & (col > 3)"),
        ("x * 2.0", "tl.maximum(x, row)"),
        ("    x = tl.load", "    N_ = N + 1\n    x = tl.load"),
    ] {
        assert_eq!(TRANSPOSE.matches(old).count(), 1, "{old}");
        let is_turned = rewritten(&TRANSPOSE.replace(old, new)).is_some();
        assert_eq!(is_turned, !new.contains("1023"), "{new}");
    }
    let wide = TRANSPOSE.replace("start = pid * BLOCK", "start = (pid * BLOCK).to(tl.int64)");
    assert!(rewritten(&wide).unwrap().contains("rows = pid.to(tl.int64) // tiles_across * BLOCK_R"));
    let in_place = TRANSPOSE.replace("x_ptr + row * stride_r + col * stride_c", "y_ptr + offs");
    assert!(rewritten(&in_place).is_some(), "each element is its own");
}

#[test]
fn kernels_with_uncertain_elements_get_no_two_dimensional_tiles() {
    for (old, new) in [
        // Operations that are not elementwise.
        ("x * 2.0", "x * tl.sum(x, 0)"),
        ("x * 2.0", "x[:, None]"),
        ("x * 2.0", "x * pid"),
        ("x * 2.0", "x * start"),
        ("x * 2.0", "x * BLOCK"),
        ("x * 2.0", "x * tl.arange(0, BLOCK)"),
        ("x * 2.0", "x * tl.num_programs(0)"),
        ("x * 2.0", "helper(x)"),
        ("x * 2.0", "tl.fma(x, row, col)"),
        ("    tl.store", "    tl.atomic_add(y_ptr, x)\n    tl.store"),
        ("    x = tl.load", "    for i in range(N):\n        row += 1\n    x = tl.load"),
        ("    x = tl.load", "    N = N + 1\n    x = tl.load"),
        ("    x = tl.load", "    offs = offs + 1\n    x = tl.load"),
        ("    x = tl.load", "    if n > 7:\n        row = offs\n    x = tl.load"),
        // Shapes that Triton does not broadcast.
        ("y_ptr + offs", "y_ptr + row"),
        ("x_ptr + row * stride_r + col * stride_c, mask=mask", "x_ptr + row * stride_r, mask=mask & (col > 3)"),
        ("x_ptr + row * stride_r + col * stride_c, mask=mask, other=0.0", "x_ptr + row, mask=mask, other=col"),
        // Elements that are not known to be the same, or no division of indices.
        ("row = offs // N\n    col = offs % N", "row = offs // 7\n    col = offs % 7"),
        ("x * 2.0, mask=mask", "x * 2.0"),
        ("x * 2.0, mask=mask", "x * 2.0, mask=mask | (x > 0)"),
        ("mask = offs < n", "mask = offs <= n"),
        ("mask = offs < n", "mask = offs < N"),
        ("x_ptr + row * stride_r + col * stride_c", "y_ptr + row * stride_r + col * stride_c"),
        ("(x, y, n,", "(y, y, n,"),
        ("program_id(axis=0)", "program_id(axis=1)"),
        // Launches that are not understood.
        ("triton.cdiv(n, 1024)", "triton.cdiv(n, 512)"),
        ("triton.cdiv(n, 1024)", "triton.cdiv(x.size(0), 1024)"),
        ("triton.cdiv(n, 1024)", "min(triton.cdiv(n, 1024), 7)"),
        ("    grid = (triton.cdiv(n, 1024),)", "    grid = (triton.cdiv(n, 1024),)\n    n = 7"),
        ("(triton.cdiv(n, 1024),)", "(triton.cdiv(n, 1024), 2)"),
        ("BLOCK=1024", "**options"),
        ("    return y\n", "    k[grid](x, y, n, y.shape[1], 1, 1, BLOCK=1024)\n    return y\n"),
        ("y.shape[1], x.stride(1)", "f(y), x.stride(1)"),
        ("@triton.jit\n", "@triton.autotune(configs=[], key=[])\n@triton.jit\n"),
        ("def run", "@triton.jit\ndef other(x_ptr):\n    k(x_ptr, x_ptr, 1, 1, 1, 1, 8)\n\ndef run"),
    ] {
        assert_eq!(TRANSPOSE.matches(old).count(), 1, "{old}");
        assert_eq!(rewritten(&TRANSPOSE.replace(old, new)), None, "{new}");
    }
}

#[test]
fn launches_in_comments_are_left_alone() {
    let candidate = Candidate::original(TRANSPOSE);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let mut subject = Subject::new(&candidate, TRANSPOSE, "k", &workload).unwrap();
    let launch = Workload { source: WorkloadSource::Launch, ..workload.clone() };
    subject.workload = &launch;
    assert!(TwoDimensional.turns(&subject, &mut Rng::new(1)).is_empty());
}
