use protocol::Workload;
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;

fn turned(text: &str) -> Option<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, text, "kernel", &workload).unwrap();
    let mut turns = Autotuned.turns(&subject, &mut Rng::new(1));
    assert!(turns.len() < 2);
    let turn = turns.pop()?;
    assert!(subject.is_changed_by(&turn), "others pass numbers to it");
    Some(apply_edits(text, &turn.edits))
}

const ADD: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)

def run(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, 1024),)
    kernel[grid](x, y, out, n, BLOCK=1024, num_warps=4)
    return out
";

const TUNED: &str = "@triton.autotune(
    configs=[
        triton.Config({\"BLOCK\": 1024}, num_warps=4),
        triton.Config({\"BLOCK\": 2048}, num_warps=4),
        triton.Config({\"BLOCK\": 512}, num_warps=4),
        triton.Config({\"BLOCK\": 1024}, num_warps=8),
        triton.Config({\"BLOCK\": 1024}, num_warps=2),
    ],
    key=[\"n\"],
)
@triton.jit";

#[test]
fn numbers_of_an_elementwise_launch_move_to_configurations() {
    let expected = ADD
        .replace("@triton.jit", TUNED)
        .replace("(triton.cdiv(n, 1024),)", "lambda meta: (triton.cdiv(n, meta[\"BLOCK\"]),)")
        .replace(", BLOCK=1024, num_warps=4", "");
    assert_eq!(turned(ADD).as_deref(), Some(expected.as_str()));
    assert_eq!(turned(&expected), None, "it has a tuner");
    // The grid is written in the launch itself.
    let inline = ADD.replace("    grid = (triton.cdiv(n, 1024),)\n", "").replace("[grid]", "[((n + 1023) // 1024,)]");
    let found = turned(&inline).unwrap();
    let launch = "    kernel[lambda meta: ((n + meta[\"BLOCK\"] - 1) // meta[\"BLOCK\"],)](x, y, out, n)\n";
    assert!(found.contains(launch), "{found}");
    // A number that has a name is removed with the name; a positional number is removed before other arguments.
    let named = ADD
        .replace(
            "    grid = (triton.cdiv(n, 1024),)",
            "    BLOCK, W = 1024, 4  # as measured\n    grid = (triton.cdiv(n, BLOCK),)",
        )
        .replace("BLOCK=1024, num_warps=4", "BLOCK, True, num_warps=W")
        .replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, ANY: tl.constexpr");
    let expected = expected
        .replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, ANY: tl.constexpr")
        .replace("out, n)", "out, n, ANY=True)");
    assert_eq!(turned(&named).as_deref(), Some(expected.as_str()));
}

#[test]
fn a_grid_that_is_a_function_stays() {
    let text = ADD.replace("(triton.cdiv(n, 1024),)", "lambda meta: (triton.cdiv(n, meta['BLOCK']),)");
    let expected = text.replace("@triton.jit", TUNED).replace(", BLOCK=1024, num_warps=4", "");
    assert_eq!(turned(&text).as_deref(), Some(expected.as_str()));
    // The number in the grid becomes the tile size.
    let text = ADD.replace("(triton.cdiv(n, 1024),)", "lambda _: (triton.cdiv(n, 1024),)");
    let found = turned(&text).unwrap();
    assert!(found.contains("lambda _: (triton.cdiv(n, _[\"BLOCK\"]),)"), "{found}");
}

const PRODUCT: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP
    group_size_m = min(num_pid_m - first_pid_m, GROUP)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)

def run(a, b):
    M, K = a.shape
    K, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    grid = lambda META: (triton.cdiv(M, META[\"BLOCK_M\"]) * triton.cdiv(N, META[\"BLOCK_N\"]),)
    kernel[grid](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=128, BLOCK_N=128, BLOCK_K=32,
        GROUP=8, num_warps=4, num_stages=3,
    )
    return c
";

#[test]
fn a_product_gets_configurations_for_all_tile_sizes() {
    let expected = PRODUCT
        .replace(
            "@triton.jit",
            "@triton.autotune(
    configs=[
        triton.Config({\"BLOCK_M\": 128, \"BLOCK_N\": 128, \"BLOCK_K\": 32}, num_warps=4, num_stages=3),
        triton.Config({\"BLOCK_M\": 256, \"BLOCK_N\": 128, \"BLOCK_K\": 32}, num_warps=8, num_stages=3),
        triton.Config({\"BLOCK_M\": 128, \"BLOCK_N\": 256, \"BLOCK_K\": 32}, num_warps=8, num_stages=3),
        triton.Config({\"BLOCK_M\": 128, \"BLOCK_N\": 128, \"BLOCK_K\": 64}, num_warps=4, num_stages=3),
        triton.Config({\"BLOCK_M\": 64, \"BLOCK_N\": 128, \"BLOCK_K\": 32}, num_warps=4, num_stages=3),
        triton.Config({\"BLOCK_M\": 128, \"BLOCK_N\": 64, \"BLOCK_K\": 32}, num_warps=4, num_stages=3),
    ],
    key=[\"M\", \"N\", \"K\"],
)
@triton.jit",
        )
        .replace(
            "c.stride(1),\n        BLOCK_M=128, BLOCK_N=128, BLOCK_K=32,\n        GROUP=8, num_warps=4, num_stages=3,",
            "c.stride(1),\n        GROUP=8,",
        );
    assert_eq!(turned(PRODUCT).as_deref(), Some(expected.as_str()));
    // The tile of a loop without masks does not grow.
    let even = PRODUCT
        .replace(", mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0", "")
        .replace(", mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0", "")
        .replace("BLOCK_K=32", "BLOCK_K=64");
    let found = turned(&even).unwrap();
    assert!(found.contains("\"BLOCK_K\": 32") && !found.contains("\"BLOCK_K\": 128"), "{found}");
}

const ROWS: &str = "import torch
import triton
import triton.language as tl

@triton.heuristics({\"EVEN\": lambda args: args[\"n\"] % args[\"BLOCK\"] == 0})
@triton.jit
def kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=(cols < n) | EVEN, other=0.0)
        total += x.to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0) / n)

def run(x):
    rows, n = x.shape
    out = torch.empty(rows, device=x.device)
    kernel[(rows,)](x, out, x.stride(0), n, BLOCK=1024)
    return out
";

#[test]
fn a_loop_over_rows_is_tuned_and_its_grid_stays() {
    let found = turned(ROWS).unwrap();
    assert!(found.contains("    key=[\"n\"],\n)\n@triton.heuristics(") && found.contains("\"BLOCK\": 2048"), "{found}");
    assert!(found.contains("    kernel[(rows,)](x, out, x.stride(0), n)\n"), "{found}");
    // The tile of a whole row keeps its size: only `num_warps` changes.
    let whole = ROWS
        .replace("    for start in range(0, n, BLOCK):\n", "    if True:\n")
        .replace("start + tl.arange", "tl.arange")
        .replace("BLOCK=1024", "BLOCK=triton.next_power_of_2(n)");
    let found = turned(&whole).unwrap();
    assert!(found.contains("triton.Config({}, num_warps=8),"), "{found}");
    assert!(found.contains("n, BLOCK=triton.next_power_of_2(n))"), "{found}");
}

#[test]
fn uncertain_kernels_and_launches_get_no_autotuner() {
    let put = |from: &str, to: &str| {
        assert!(ADD.contains(from), "{from}");
        ADD.replace(from, to)
    };
    let launch = "    kernel[grid](x, y, out, n, BLOCK=1024, num_warps=4)\n";
    let cases = [
        ("in place", put("out = torch.empty_like(x)", "out = x")),
        ("maybe in place", put("out = torch.empty_like(x)", "out = x if x.is_cuda else torch.empty_like(x)")),
        ("given by the caller", put("def run(x, y):\n    out = torch.empty_like(x)", "def run(x, y, out):")),
        ("a part of what is written", put("n = x.numel()", "n = x.numel()\n    y = out[:]")),
        ("read and written", put("x = tl.load(x_ptr", "x = tl.load(out_ptr")),
        (
            "atomic",
            put("tl.store(out_ptr + offs, x + y, mask=mask)", "tl.atomic_add(out_ptr + offs, x + y, mask=mask)"),
        ),
        ("two launches", put(launch, &format!("{launch}{launch}"))),
        ("another use", put("    return out", "    kernel.warmup(x)\n    return out")),
        ("star", put("x, y, out, n,", "*[x, y, out], n,")),
        ("unknown option", put("num_warps=4", "num_warps=4, num_ctas=2")),
        ("no warps", put("num_warps=4", "num_warps=0")),
        ("computed warps", put("num_warps=4", "num_warps=f(n)")),
        ("another decorator", put("@triton.jit", "@other\n@triton.jit")),
        ("a partial result", put("out_ptr + offs, x + y, mask=mask", "out_ptr + pid, tl.sum(x + y, 0)")),
        ("one for each program", put("y_ptr + offs, mask=mask", "y_ptr + pid")),
        ("one for each tile", put("y_ptr + offs, mask=mask", "y_ptr + pid * BLOCK")),
        ("a norm of the tile", put("x + y, mask", "x / tl.max(y, 0), mask")),
        ("a norm by a method", put("x + y, mask", "x / y.max(0), mask")),
        (
            "a norm by a helper",
            put("x + y, mask", "norm(x), mask")
                .replace("@triton.jit", "@triton.jit\ndef norm(x):\n    return x / tl.max(x, 0)\n\n@triton.jit"),
        ),
        ("sums of the tile", put("x + y, mask", "tl.cumsum(x, 0) + y, mask")),
        ("the length as a value", put("x + y, mask", "x + y * (1.0 / BLOCK), mask")),
        ("the first program", put("    y = tl", "    if pid == 0:\n        offs += 1\n    y = tl")),
        ("while", put("    y = tl", "    while n > 0:\n        n -= 1\n    y = tl")),
        ("a grid that rounds down", put("triton.cdiv(n, 1024)", "n // 1024")),
        ("a grid that is used again", put("    return out", "    return out, grid")),
        ("no size", put("n, BLOCK=1024", "4096, BLOCK=1024")),
        (
            "a number that is used again",
            put("n = x.numel()", "B = 1024\n    n = x.numel() // B * B")
                .replace("BLOCK=1024", "BLOCK=B")
                .replace("(n, 1024", "(n, B"),
        ),
    ];
    for (what, text) in cases {
        assert_eq!(turned(&text), None, "{what}");
    }
}

#[test]
fn a_tile_size_chosen_elsewhere_is_not_tuned() {
    let given = ADD.replace("run(x, y)", "run(x, y, B=1024)");
    let global = ADD.replace("@triton.jit", "B = 1024\n\n@triton.jit");
    for text in [given, global].map(|text| text.replace("BLOCK=1024", "BLOCK=B").replace("(n, 1024", "(n, B")) {
        let found = turned(&text).unwrap();
        assert!(found.contains("triton.Config({}, num_warps=8),") && found.contains("out, n, BLOCK=B)"), "{found}");
        assert!(found.contains("grid = (triton.cdiv(n, B),)"), "{found}");
    }
}

#[test]
fn elementwise_helpers_do_not_prevent_an_autotuner() {
    let helper = "@triton.jit\ndef relu(x):\n    return tl.maximum(x.to(tl.float32), 0)\n\n";
    let text = ADD.replace("x + y, mask", "relu(x) + y, mask").replace("@triton.jit", &format!("{helper}@triton.jit"));
    assert!(turned(&text).unwrap().contains("\"BLOCK\": 2048"));
}

#[test]
fn floats_and_strides_are_no_keys() {
    let text =
        ROWS.replace("stride, n, BLOCK", "stride, n, eps, BLOCK").replace("cols < n)", "(cols < n) & (cols < eps))");
    let text = text.replace("x.stride(0), n, ", "x.stride(0), n, 1e-5, ");
    assert!(turned(&text).unwrap().contains("key=[\"n\"]"));
    let stride = ROWS.replace("cols < n)", "cols < stride)").replace("range(0, n, B", "range(0, stride, B");
    assert_eq!(turned(&stride), None);
}

#[test]
fn a_launch_recorded_by_itself_gets_no_autotuner() {
    let candidate = Candidate::original(ADD);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let mut subject = Subject::new(&candidate, ADD, "kernel", &workload).unwrap();
    let alone = Workload { source: WorkloadSource::Launch, ..workload.clone() };
    subject.workload = &alone;
    assert!(Autotuned.turns(&subject, &mut Rng::new(1)).is_empty());
}
