use protocol::{ArgumentValue, LaunchRecord, Workload};
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;
use crate::unroll::RoundsAtOnce;

fn turns_with(text: &str, workload: &Workload) -> Vec<(String, String)> {
    let candidate = Candidate::original(text);
    let subject = Subject::new(&candidate, text, "k", workload).unwrap();
    let turns = SplitLoop.turns(&subject, &mut Rng::new(1));
    turns.into_iter().map(|turn| (turn.kind, apply_edits(text, &turn.edits))).collect()
}

fn run() -> Workload {
    Workload { entry: "run".to_owned(), ..Workload::default() }
}

fn first(text: &str, kind: &str) -> Option<String> {
    turns_with(text, &run()).into_iter().find(|(known, _)| known == kind).map(|(_, text)| text)
}

const SUM: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, out_ptr, n_rows, n_cols, B: tl.constexpr):
    cols = tl.program_id(0) * B + tl.arange(0, B)
    mask = cols < n_cols
    acc = tl.zeros((B,), dtype=tl.float32)
    for row in range(n_rows):  # one by one
        acc += tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(out_ptr + cols, acc, mask=mask)

def run(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, device=x.device, dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(n_cols, meta[\"B\"]),)
    k[grid](x, out, n_rows, n_cols, 32, num_warps=1)  # all of it
    return out
";

#[test]
fn a_sum_over_rows_is_shared_by_programs() {
    let expected = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, out_ptr, n_rows, n_cols, B: tl.constexpr, stride_part, SPLIT: tl.constexpr):
    split = tl.program_id(1)
    out_ptr += split.to(tl.int64) * stride_part
    cols = tl.program_id(0) * B + tl.arange(0, B)
    mask = cols < n_cols
    acc = tl.zeros((B,), dtype=tl.float32)
    rounds = tl.cdiv(n_rows, SPLIT)
    first = split * rounds
    last = tl.maximum(tl.minimum(first + rounds, n_rows), first)
    for row in range(first, last):  # one by one
        acc += tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.store(out_ptr + cols, acc, mask=mask)


@triton.jit
def k_of_parts(parts_ptr, out_ptr, count, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    acc = tl.load(parts_ptr + offsets, mask=mask)
    for part in tl.static_range(1, SPLIT):
        parts_ptr += count
        acc += tl.load(parts_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, acc, mask=mask)

def run(x):
    n_rows, n_cols = x.shape
    out = torch.empty(n_cols, device=x.device, dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(n_cols, meta[\"B\"]),)
    splits = 4
    parts = torch.empty((splits, out.numel()), device=out.device, dtype=torch.float32)
    k[lambda meta: (*grid(meta), splits)](x, parts, n_rows, n_cols, 32, num_warps=1, stride_part=parts.stride(0), SPLIT=splits)  # all of it
    k_of_parts[(triton.cdiv(out.numel(), 256),)](parts, out, out.numel(), splits, 256)
    return out
";
    assert_eq!(first(SUM, "split_parts").unwrap(), expected);
    assert_eq!(turns_with(expected, &run()), [], "once is enough");
}

#[test]
fn a_plain_fp32_sum_is_split_with_atomic_additions() {
    let expected = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, out_ptr, n_rows, n_cols, B: tl.constexpr, SPLIT: tl.constexpr):
    split = tl.program_id(1)
    cols = tl.program_id(0) * B + tl.arange(0, B)
    mask = cols < n_cols
    acc = tl.zeros((B,), dtype=tl.float32)
    rounds = tl.cdiv(n_rows, SPLIT)
    first = split * rounds
    last = tl.maximum(tl.minimum(first + rounds, n_rows), first)
    for row in range(first, last):  # one by one
        acc += tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    tl.atomic_add(out_ptr + cols, acc, mask=mask)

def run(x):
    n_rows, n_cols = x.shape
    out = torch.zeros(n_cols, device=x.device, dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(n_cols, meta[\"B\"]),)
    splits = 4
    k[lambda meta: (*grid(meta), splits)](x, out, n_rows, n_cols, 32, num_warps=1, SPLIT=splits)  # all of it
    return out
";
    assert_eq!(first(SUM, "split_atomic").unwrap(), expected);
}

const PRODUCT: &str = "import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({\"M\": 16, \"N\": 32, \"K\": 64}, num_warps=2)], key=[\"k_size\"])
@triton.jit
def k(a, b, bias, c, n, k_size, stride_bk, stride_c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HAS_BIAS: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    offs_n = tl.program_id(1) * N + tl.arange(0, N)
    offs_k = tl.arange(0, K)
    a_ptrs = a + m[:, None] * k_size + offs_k[None, :]
    b_ptrs = b + offs_k[:, None] * stride_bk + offs_n[None, :]
    c += 0
    acc = tl.zeros((M, N), dtype=tl.float32)
    for i in tl.range(0, tl.cdiv(k_size, K), num_stages=2):
        inside = k_size - i * K
        x = tl.load(a_ptrs, mask=offs_k[None, :] < inside, other=0.0)
        acc = tl.dot(x, tl.load(b_ptrs, mask=offs_k[:, None] < inside, other=0.0), acc)
        a_ptrs += K
        b_ptrs += K * stride_bk
    # What comes behind it.
    if HAS_BIAS:
        acc += tl.load(bias + offs_n)[None, :]
    acc = tl.maximum(acc, 0.0)

    # Where it goes.
    c_ptrs = c + m[:, None] * stride_c + offs_n[None, :]
    tl.store(c_ptrs, acc.to(tl.float16), mask=offs_n[None, :] < n)

def run(a, b, bias):
    c = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
    k[lambda meta: (a.shape[0] // meta[\"M\"], triton.cdiv(b.shape[1], meta[\"N\"]))](
        a, b, bias, c, b.shape[1], a.shape[1], b.stride(0), c.stride(0),
        HAS_BIAS=bias is not None,
    )
    return c
";

#[test]
fn pointers_start_at_their_part_and_a_second_kernel_does_the_rest() {
    let expected = "import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({\"M\": 16, \"N\": 32, \"K\": 64}, num_warps=2)], key=[\"k_size\"])
@triton.jit
def k(a, b, bias, c, n, k_size, stride_bk, stride_c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HAS_BIAS: tl.constexpr, stride_part, SPLIT: tl.constexpr):
    split = tl.program_id(2)
    c += split.to(tl.int64) * stride_part
    m = tl.program_id(0) * M + tl.arange(0, M)
    offs_n = tl.program_id(1) * N + tl.arange(0, N)
    offs_k = tl.arange(0, K)
    a_ptrs = a + m[:, None] * k_size + offs_k[None, :]
    b_ptrs = b + offs_k[:, None] * stride_bk + offs_n[None, :]
    c += 0
    acc = tl.zeros((M, N), dtype=tl.float32)
    rounds = tl.cdiv(tl.cdiv(k_size, K), SPLIT)
    first = split * rounds
    last = tl.maximum(tl.minimum(first + rounds, tl.cdiv(k_size, K)), first)
    a_ptrs += first.to(tl.int64) * K
    b_ptrs += first.to(tl.int64) * K * stride_bk
    for i in tl.range(first, last, num_stages=2):
        inside = k_size - i * K
        x = tl.load(a_ptrs, mask=offs_k[None, :] < inside, other=0.0)
        acc = tl.dot(x, tl.load(b_ptrs, mask=offs_k[:, None] < inside, other=0.0), acc)
        a_ptrs += K
        b_ptrs += K * stride_bk

    # Where it goes.
    c_ptrs = c + m[:, None] * stride_c + offs_n[None, :]
    tl.store(c_ptrs, acc, mask=offs_n[None, :] < n)


@triton.jit
def k_of_parts(parts_ptr, stride_part, SPLIT: tl.constexpr, bias, c, n, stride_c, M: tl.constexpr, N: tl.constexpr, HAS_BIAS: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    offs_n = tl.program_id(1) * N + tl.arange(0, N)
    c += 0
    parts_ptr += 0
    # Where it goes.
    c_ptrs = c + m[:, None] * stride_c + offs_n[None, :]
    part_c_ptrs = parts_ptr + m[:, None] * stride_c + offs_n[None, :]
    acc = tl.load(part_c_ptrs, mask=offs_n[None, :] < n)
    for part in tl.static_range(1, SPLIT):
        part_c_ptrs += stride_part
        acc += tl.load(part_c_ptrs, mask=offs_n[None, :] < n)
    # What comes behind it.
    if HAS_BIAS:
        acc += tl.load(bias + offs_n)[None, :]
    acc = tl.maximum(acc, 0.0)
    tl.store(c_ptrs, acc.to(tl.float16), mask=offs_n[None, :] < n)

def run(a, b, bias):
    c = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
    splits = 2
    parts = torch.empty((splits, c.numel()), device=c.device, dtype=torch.float32)
    k[lambda meta: (a.shape[0] // meta[\"M\"], triton.cdiv(b.shape[1], meta[\"N\"]), splits)](
        a, b, bias, parts, b.shape[1], a.shape[1], b.stride(0), c.stride(0),
        HAS_BIAS=bias is not None, stride_part=parts.stride(0), SPLIT=splits,
    )
    k_of_parts[lambda meta: (a.shape[0] // meta[\"M\"], triton.cdiv(b.shape[1], meta[\"N\"]))](parts, parts.stride(0), splits, bias, c, b.shape[1], c.stride(0), M=16, N=32, HAS_BIAS=bias is not None, num_warps=2)
    return c
";
    assert_eq!(first(PRODUCT, "split_parts").unwrap(), expected);
    assert_eq!(first(PRODUCT, "split_atomic"), None);
    assert_eq!(turns_with(PRODUCT, &run()).len(), 4, "the number is not turned beside configurations");
}

#[test]
fn a_maximum_folded_after_the_loop_is_split() {
    let text = SUM
        .replace("tl.zeros((B,), dtype=tl.float32)", "tl.full((8, B), float(\"-inf\"), tl.float32)")
        .replace("acc += tl.load(", "acc = tl.maximum(acc, tl.load(")
        .replace("other=0.0)", "other=0.0))")
        .replace(
            "    tl.store(out_ptr + cols, acc,",
            "    top = tl.max(acc, axis=0)\n    tl.store(out_ptr + cols, 2 * top,",
        )
        .replace("k[grid](", "k[(x.numel(),)](");
    let new = first(&text, "split_parts").unwrap();
    let own = "    top = tl.max(acc, axis=0)\n    tl.store(out_ptr + cols, top, mask=mask)\n";
    let other = "    part_ptrs = parts_ptr + cols
    top = tl.load(part_ptrs, mask=mask)
    for part in tl.static_range(1, SPLIT):
        part_ptrs += stride_part
        top = tl.maximum(top, tl.load(part_ptrs, mask=mask))
    tl.store(out_ptr + cols, 2 * top, mask=mask)
";
    assert!(new.contains(own) && new.contains(other), "{new}");
    let launches = ["    k[(x.numel(), splits,)](x, parts, ", "    k_of_parts[(x.numel(),)](parts, parts.stride(0), "];
    assert!(launches.iter().all(|launch| new.contains(launch)), "{new}");
    assert_eq!(first(&text, "split_atomic"), None, "that is no sum");
}

#[test]
fn a_split_kernel_allows_further_proposals() {
    let of = |text: &str, skill: &dyn Skill| {
        let (candidate, workload) = (Candidate::original(text), run());
        let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
        let turn = skill.turns(&subject, &mut Rng::new(1)).into_iter().next()?;
        Some((subject.knobs.clone(), apply_edits(text, &turn.edits)))
    };
    let new = first(SUM, "split_parts").unwrap();
    let (knobs, both) = of(&new, &RoundsAtOnce).unwrap();
    let known: Vec<String> = knobs.iter().map(|knob| format!("{}={}", knob.name, knob.current)).collect();
    assert_eq!(known, ["B=32", "SPLIT=4", "num_warps=1", "num_stages=3"]);
    let turned = apply_edits(&new, &super::super::launch_params::edits(&knobs, &vec![32, 8, 1, 3]));
    assert_eq!(turned, new.replace("splits = 4", "splits = 8"));
    assert!(both.contains("in range(first, last, ROUNDS):"), "{both}");

    // The skills in the other order.
    let rounds = of(SUM, &RoundsAtOnce).unwrap().1;
    let both = of(&rounds, &SplitLoop).unwrap().1;
    let words = "in range(first_ * ROUNDS, last, ROUNDS):";
    assert!(both.contains(words) && both.contains("    acc += tl.sum(acc_rows, axis=0)\n    tl.store("), "{both}");
}

#[test]
fn only_long_loops_with_few_programs_are_split() {
    let recorded = |rows: i64, grid: &[i64], dtype: &str| {
        let arguments = [("n_rows", ArgumentValue::Int(rows)), ("out_ptr", ArgumentValue::Pointer(dtype.to_owned()))];
        let launch = LaunchRecord {
            kernel: "k".to_owned(),
            grid: grid.to_vec(),
            arguments: arguments.map(|(name, value)| (name.to_owned(), value)).to_vec(),
            ..LaunchRecord::default()
        };
        turns_with(SUM, &Workload { launches: vec![launch], ..run() }).len()
    };
    assert_eq!(recorded(4096, &[128], "float32"), 4);
    assert_eq!(recorded(4096, &[128], "float16"), 2, "fp16 is not added to");
    assert_eq!(recorded(16, &[128], "float32"), 2, "sixteen rounds are too few for sixteen parts");
    assert_eq!(recorded(7, &[128], "float32"), 0);
    assert_eq!(recorded(4096, &[4096], "float32"), 0, "there are enough programs");
}

#[test]
fn unsupported_reductions_are_not_split() {
    for (old, new) in [
        ("acc += tl.load", "acc *= tl.load"),
        ("acc += tl.load", "acc = acc + acc * tl.load"),
        ("        acc += tl.load", "        tl.store(out_ptr + row, 1.0)\n        acc += tl.load"),
        ("        acc += tl.load", "        if row > 7:\n            break\n        acc += tl.load"),
        ("        acc += tl.load", "        mask = mask & (row < 7)\n        acc += tl.load"),
        ("        acc += tl.load", "        unknown(row)\n        acc += tl.load"),
        ("        acc += tl.load", "        x_ptr += tl.load(x_ptr)\n        acc += tl.load"),
        ("        acc += tl.load", "        cols += row\n        acc += tl.load"),
        ("mask = cols < n_cols", "mask = cols < n_cols + tl.program_id(1)"),
        ("    tl.store(", "    mask = mask & (tl.atomic_add(x_ptr, 1.0) > 0)\n    tl.store("),
        ("range(n_rows)", "range(1, n_rows)"),
        ("range(n_rows)", "range(tl.program_id(0), n_rows, tl.num_programs(0))"),
        ("range(n_rows)", "tl.static_range(n_rows)"),
        ("tl.zeros((B,), dtype=tl.float32)", "tl.load(x_ptr + cols)"),
        ("tl.zeros((B,), dtype=tl.float32)", "tl.full((B,), 1.0, tl.float32)"),
        ("tl.zeros((B,), dtype=tl.float32)", "tl.zeros((B,), dtype=tl.float16)"),
        ("tl.store(out_ptr + cols, acc, mask=mask)", "tl.store(out_ptr + cols, acc + row, mask=mask)"),
        ("tl.store(out_ptr + cols, acc, mask=mask)", "tl.store(out_ptr + cols, acc, mask=acc > 0)"),
        ("tl.store(out_ptr + cols, acc, mask=mask)", "tl.store(out_ptr, tl.sum(acc * 2, axis=0))"),
        ("tl.store(out_ptr + cols, acc, mask=mask)", "tl.atomic_add(out_ptr + cols, acc, mask=mask)"),
        ("    acc = tl.zeros", "    tl.store(out_ptr + cols, 0.0, mask=mask)\n    acc = tl.zeros"),
        ("    acc = tl.zeros", "    if n_cols < 3:\n        return\n    acc = tl.zeros"),
        ("    acc = tl.zeros", "    old = tl.load(out_ptr + cols)\n    acc = tl.zeros"),
        ("    acc = tl.zeros", "    for i in range(3):\n        mask = mask & mask\n    acc = tl.zeros"),
        ("(triton.cdiv(n_cols, meta[\"B\"]),)", "(7, 8, 9)"),
        ("(triton.cdiv(n_cols, meta[\"B\"]),)", "sizes"),
        ("torch.empty(n_cols,", "allocated(n_cols,"),
        ("x, out, n_rows", "x, out[0], n_rows"),
        ("    k[grid]", "    out = x\n    k[grid]"),
        ("    return out", "    k[grid](x, out, n_rows, n_cols, 32)\n    return out"),
        ("32, num_warps=1", "*given"),
    ] {
        assert_eq!(SUM.matches(old).count(), 1, "{old}");
        assert_eq!(turns_with(&SUM.replace(old, new), &run()), [], "{new}");
    }
    let reset = PRODUCT.replace("key=[\"k_size\"]", "key=[\"k_size\"], reset_to_zero=[\"c\"]");
    assert_eq!(turns_with(&reset, &run()), []);
}
