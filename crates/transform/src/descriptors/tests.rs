use model::api::{TritonTarget, Version};
use protocol::{ArgumentValue, LaunchRecord, Workload};
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;

const OLD: Version = Version { major: 3, minor: 1, patch: 0 };

fn turned(text: &str, target: TritonTarget, arguments: &[(&str, i64)]) -> Option<String> {
    let candidate = Candidate::original(text);
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), ArgumentValue::Int(*value))).collect();
    let launch = LaunchRecord { kernel: "k".to_owned(), arguments, ..LaunchRecord::default() };
    let workload = Workload { entry: "run".to_owned(), launches: vec![launch], ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap().with_target(target);
    let turns = Descriptors.turns(&subject, &mut Rng::new(1));
    turns.first().map(|turn| apply_edits(text, &turn.edits))
}

fn rewritten(text: &str) -> Option<String> {
    turned(text, TritonTarget::newest(), &[])
}

/// A product with pointers that move along `a`, and rows of `b` along the second axis of the product.
const PRODUCT: &str = "import torch
import triton
import triton.language as tl

# A product.
@triton.jit
def k(a_ptr, b_ptr, c_ptr, M, N, K, stride_m, stride_k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0)
    rows = m * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * stride_m + depth[None, :] * stride_k
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (depth[None, :] < K - i * BK), other=0.0)
        at = i * BK + depth
        b = tl.load(b_ptr + columns[None, :] * K + at[:, None],
                    mask=(at[:, None] < K) & (N > columns[None, :])).to(a.dtype)  # turned
        acc += tl.dot(a, b)
        a_ptrs += BK * stride_k
    tl.store(c_ptr + rows[:, None] * N + columns, acc, mask=(rows[:, None] < M) & (columns < N))

def run(a, b, c, M, N, K):
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    k[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), BM=64, BN=64, BK=32)
";

#[test]
fn pointers_and_masks_are_replaced_by_descriptor_positions() {
    let new = rewritten(PRODUCT).unwrap();
    let kernel = "def allocate_scratch(size: int, alignment: int, stream):
    return torch.empty(size, device=\"cuda\", dtype=torch.int8)


# A product.
@triton.jit
def k(a_ptr, b_ptr, c_ptr, M, N, K, stride_m, stride_k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, DESCRIPTORS: tl.constexpr):
    m = tl.program_id(0)
    rows = m * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * stride_m + depth[None, :] * stride_k
    acc = tl.zeros((BM, BN), tl.float32)
    if DESCRIPTORS:
        a_tiles = tl.make_tensor_descriptor(
            a_ptr, shape=[M, K], strides=[stride_m, 1], block_shape=[BM, BK]
        )
        b_tiles = tl.make_tensor_descriptor(
            b_ptr, shape=[N, K], strides=[K, 1], block_shape=[BN, BK]
        )
    for i in range(0, tl.cdiv(K, BK)):
        if DESCRIPTORS:
            a = a_tiles.load([m * BM, i * BK])
        else:
            a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (depth[None, :] < K - i * BK), other=0.0)
        at = i * BK + depth
        if DESCRIPTORS:
            b = tl.trans(b_tiles.load([tl.program_id(1) * BN, i * BK])).to(a.dtype)
        else:
            b = tl.load(b_ptr + columns[None, :] * K + at[:, None],
                        mask=(at[:, None] < K) & (N > columns[None, :])).to(a.dtype)  # turned
        acc += tl.dot(a, b)
";
    assert!(new.contains(kernel), "{new}");
    let host = "    has_descriptors = (
        a.data_ptr() % 16 == 0
        and a.stride(0) * a.element_size() % 16 == 0
        and a.stride(1) == 1
        and b.data_ptr() % 16 == 0
        and K * b.element_size() % 16 == 0
    )
    triton.set_allocator(allocate_scratch)
    k[grid](a, b, c, M, N, K, a.stride(0), a.stride(1), BM=64, BN=64, BK=32, DESCRIPTORS=has_descriptors)
";
    assert!(new.ends_with(host), "{new}");
    assert_eq!(rewritten(&new), None, "once is enough");
}

#[test]
fn the_contiguous_axis_is_that_of_the_recorded_call() {
    let new = turned(PRODUCT, TritonTarget::newest(), &[("stride_m", 1), ("stride_k", 512)]).unwrap();
    assert!(new.contains("a_ptr, shape=[K, M], strides=[stride_k, 1], block_shape=[BK, BM]"), "{new}");
    assert!(new.contains("a = tl.trans(a_tiles.load([i * BK, m * BM]))"), "{new}");
    assert!(new.contains("and a.stride(1) * a.element_size() % 16 == 0\n        and a.stride(0) == 1\n"), "{new}");
}

#[test]
fn loads_that_are_not_a_tile_of_a_matrix_stay_as_they_are() {
    // Which of the two loads use a descriptor.
    let has = |old: &str, new: &str| {
        assert_eq!(PRODUCT.matches(old).count(), 1, "{old}");
        let new = rewritten(&PRODUCT.replace(old, new)).unwrap_or_default();
        (new.contains("a = a_tiles.load"), new.contains("b_tiles.load"))
    };
    assert_eq!(has("# turned", "# turned around"), (true, true));
    // The grid determines the number of rows.
    assert_eq!(has("(rows[:, None] < M) & (depth[None, :] < K - i * BK)", "depth[None, :] < K - i * BK"), (true, true));
    for (old, new) in [
        ("a_ptrs += BK * stride_k", "a_ptrs += BK * stride_m"),
        ("a_ptrs += BK * stride_k", "a_ptrs += stride_k"),
        ("a_ptrs += BK * stride_k", "if i > 2:\n            a_ptrs += BK * stride_k"),
        ("        a_ptrs += BK * stride_k\n", ""),
        ("        acc += tl.dot(a, b)", "        a_ptrs += 1\n        acc += tl.dot(a, b)"),
        ("depth[None, :] < K - i * BK", "depth[None, :] < K"),
        ("depth[None, :] < K - i * BK", "depth[None, :] <= K - i * BK"),
        ("depth[None, :] < K - i * BK", "(depth[None, :] < K - i * BK) & (i < 7)"),
        ("other=0.0)", "other=1.0)"),
        ("a_ptr + rows[:, None]", "a_ptr + 1 + rows[:, None]"),
        ("    acc = tl", "    M = M - 1\n    acc = tl"),
        ("k[grid](a, b", "k[grid](f(a), b"),
    ] {
        assert!(!has(old, new).0, "{new}");
    }
    for (old, new) in [
        ("at = i * BK + depth", "at = (i * BK + depth) % K"),
        ("columns[None, :] * K + at", "columns[None, :] * (K + 1) * i + at"),
        ("N > columns[None, :]", "N > at[:, None]"),
    ] {
        assert!(!has(old, new).1, "{new}");
    }
}

#[test]
fn kernels_without_products_and_other_surroundings_are_left_alone() {
    for (old, new) in [
        ("tl.dot(a, b)", "tl.sum(a, 1)[:, None]"),
        ("import torch\n", ""),
        ("    grid = (", "    triton.set_allocator(mine)\n    grid = ("),
        (
            "    k[grid](a, b, c, M,",
            "    k[grid](b, a, c, M, N, K, 1, 1, BM=64, BN=64, BK=32)\n    k[grid](a, b, c, M,",
        ),
        ("@triton.jit", "@other\n@triton.jit"),
    ] {
        assert_eq!(PRODUCT.matches(old).count(), 1, "{old}");
        assert_eq!(rewritten(&PRODUCT.replace(old, new)), None, "{new}");
    }
    assert_eq!(turned(PRODUCT, TritonTarget::of(OLD), &[]), None, "that release has none");
}

/// A product whose programs are ordered in groups, and whose rows and columns wrap around after the last one.
const GROUPED: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def k(a_ptr, b_ptr, c_ptr, M, N, K, stride_m, stride_k, stride_n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    in_group = GROUP * tl.cdiv(N, BN)
    first = pid // in_group * GROUP
    count = min(tl.cdiv(M, BM) - first, GROUP)
    pid_m = first + (pid % in_group) % count
    pid_n = (pid % in_group) // count
    rows = (pid_m * BM + tl.arange(0, BM)) % M
    columns = tl.max_contiguous(tl.multiple_of((pid_n * BN + tl.arange(0, BN)) % N, BN), BN)
    depth = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * stride_m + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * stride_k + columns[None, :] * stride_n
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=depth[None, :] < K - i * BK, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < K - i * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * stride_k
    scale = tl.load(c_ptr + columns)
    out_rows = pid_m * BM + tl.arange(0, BM)
    out_columns = pid_n * BN + tl.arange(0, BN)
    inside = (out_rows[:, None] < M) & (out_columns[None, :] < N)
    tl.store(c_ptr + out_rows[:, None] * N + out_columns[None, :], acc * scale[None, :], mask=inside)

def run(a, b, c, M, N, K):
    grid = lambda meta: (triton.cdiv(M, meta['BM']) * triton.cdiv(N, meta['BN']),)
    k[grid](a, b, c, M, N, K, a.stride(0), b.stride(0), b.stride(1), BM=64, BN=64, BK=32, GROUP=8)
";

#[test]
fn wrapped_rows_and_grouped_programs_get_descriptors() {
    let new = rewritten(GROUPED).unwrap();
    for line in [
        "    rows = pid_m * BM + tl.arange(0, BM)\n",
        "    columns = tl.max_contiguous(tl.multiple_of(pid_n * BN + tl.arange(0, BN), BN), BN)\n",
        "            a_ptr, shape=[M, K], strides=[stride_m, 1], block_shape=[BM, BK]\n",
        "            b_ptr, shape=[K, N], strides=[stride_k, 1], block_shape=[BK, BN]\n",
        "            a = a_tiles.load([pid_m * BM, i * BK])\n",
        "            b = b_tiles.load([i * BK, pid_n * BN])\n",
        "            a = tl.load(a_ptrs, mask=(depth[None, :] < K - i * BK) & (rows[:, None] < M), other=0.0)\n",
        "    scale = tl.load(c_ptr + columns, mask=(columns < N), other=0)\n",
    ] {
        assert!(new.contains(line), "{line}{new}");
    }
    assert_eq!(rewritten(&new), None, "once is enough");
}

#[test]
fn observable_wrapped_rows_are_kept() {
    for (old, new) in [
        // The elements beyond the last row are stored, or affect stored ones.
        ("(out_rows[:, None] < M) & (out", "(out"),
        ("acc * scale[None, :]", "acc - tl.sum(acc, 0)[None, :]"),
        ("acc * scale[None, :]", "helper(acc)"),
        ("tl.dot(a, b, acc)", "tl.dot(a, tl.reshape(b, (BK, BN)), acc)"),
        // A row is used otherwise, or is not a row of the launch's matrix.
        ("a_ptr + rows[:, None] * stride_m", "a_ptr + (rows * 2)[:, None] * stride_m"),
        ("tl.arange(0, BM)) % M", "tl.arange(0, BM)) % (M - 1)"),
    ] {
        assert_eq!(GROUPED.matches(old).count(), 1, "{old}");
        let new = rewritten(&GROUPED.replace(old, new)).unwrap_or_default();
        assert!(!new.contains("a_tiles.load"), "{new}");
    }
    // A variable that is assigned twice cannot describe a position.
    let twice = GROUPED.replace("    rows = (", "    pid_m = pid_m + 1\n    rows = (").replace(" % M\n", "\n");
    assert!(!rewritten(&twice).unwrap_or_default().contains("a_tiles.load"));
}

#[test]
fn without_masks_the_divided_sizes_bound_the_matrices() {
    let rows = "    rows = m * BM + tl.arange(0, BM)\n";
    let plain = PRODUCT.replace(", mask=(rows[:, None] < M) & (depth[None, :] < K - i * BK), other=0.0)", ")");
    let plain = plain.replace(",\n                    mask=(at[:, None] < K) & (N > columns[None, :]))", ")");
    let plain = plain.replace(", mask=(rows[:, None] < M) & (columns < N))", ")");
    assert!(!plain.contains("mask"), "{plain}");
    let shapes = ["a_ptr, shape=[M, K], strides=[stride_m, 1]", "b_ptr, shape=[N, K], strides=[K, 1]"];
    let loads = ["a_tiles.load([m * BM, i * BK])", "tl.trans(b_tiles.load([tl.program_id(1) * BN, i * BK]))"];
    let told =
        ["(depth[None, :] < K - i * BK) & (rows[:, None] < M), other=0)", "(at[:, None] < K) & (columns[None, :] < N)"];
    let new = rewritten(&plain).unwrap();
    for expected in shapes.iter().chain(&loads).chain(&told) {
        assert!(new.contains(expected), "{expected}: {new}");
    }
    // Where rows wrap around, other masks stay.
    let anew = plain.replace(rows, "    rows = (m * BM + tl.arange(0, BM)) % M\n");
    let anew = anew.replace("tl.store(c_ptr + rows[:, None] * N + columns, acc)", "tl.store(c_ptr + (m * BM + tl.arange(0, BM))[:, None] * N + columns, acc, mask=(m * BM + tl.arange(0, BM))[:, None] < M)");
    let new = rewritten(&anew).unwrap();
    for expected in shapes.iter().chain(&loads) {
        assert!(new.contains(expected), "{expected}: {new}");
    }
    // The number of rows is unknown.
    assert!(!rewritten(&plain.replace("a, b, c, M, N", "a, b, c, 8, N")).is_some_and(|new| new.contains("a_tiles")));
}
