use protocol::{LaunchRecord, Workload};

use super::*;
use crate::candidate::{Candidate, describe};

const KERNEL: &str = "import triton
import triton.language as tl

@triton.jit
def k(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(axis=1) * BN + tl.arange(0, BN)
    ks = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        x = tl.load(a + m[:, None] * K + i * BK + ks[None, :])
        y = tl.load(b + (i * BK + ks[:, None]) * N + n[None, :])
        acc += tl.dot(x, y)
    tl.store(c + m[:, None] * N + n[None, :], acc)

def run(a, b, c):
    M, K = a.shape
    N = b.shape[1]
    grid = lambda meta: (triton.cdiv(M, meta[\"BM\"]), triton.cdiv(N, meta[\"BN\"]))
    k[grid](a, b, c, M, N, K, BM=64, BN=64, BK=32)
";

/// `q @ k` and then `p @ v`: the size of a head is fixed.
const ATTENTION: &str = "import triton
import triton.language as tl

@triton.jit
def k(q, kv, out, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    d = tl.arange(0, D)
    x = tl.load(q + tl.arange(0, BM)[:, None] * D + d[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        at = start + tl.arange(0, BN)
        y = tl.load(kv + at[None, :] * D + d[:, None])
        p = tl.dot(x, y)
        z = tl.load(kv + at[:, None] * D + d[None, :])
        acc += tl.dot(p.to(tl.float16), z)
    tl.store(out + tl.arange(0, BM)[:, None] * D + d[None, :], acc)

def run(q, kv, out):
    k[(1,)](q, kv, out, 64, BM=32, BN=32, D=64)
";

/// The changes of all proposals in words, for pointers to these types.
fn turned(text: &str, dtypes: &[&str]) -> Vec<String> {
    let candidate = Candidate::original(text);
    let arguments = dtypes.iter().map(|dtype| ("a".to_owned(), ArgumentValue::Pointer((*dtype).to_owned()))).collect();
    let launch = LaunchRecord { kernel: "k".to_owned(), arguments, ..LaunchRecord::default() };
    let workload = Workload { entry: "run".to_owned(), launches: vec![launch], ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    let turns = ProductTiles.turns(&subject, &mut Rng::new(1));
    turns.iter().map(|turn| describe(&turn.changes)).collect()
}

#[test]
fn large_products_get_tiles_that_keep_tensor_cores_busy() {
    let half = turned(KERNEL, &["bfloat16", "float32"]);
    assert_eq!(half.len(), LARGE.len());
    assert_eq!(half[1], "BM 64 → 128, BN 64 → 256, BK 32 → 64, num_warps 4 → 8, num_stages 3 → 4");
    // The combination that the kernel has already, here the first, is no proposal.
    let written = KERNEL.replace("BM=64, BN=64, BK=32", "BM=128, BN=256, BK=64, num_warps=8");
    assert_eq!(turned(&written, &["float16"]).len(), LARGE.len() - 1);
    // For types of other sizes, the same number of bytes is another number of elements.
    assert!(turned(KERNEL, &["float32"])[1].contains("BN 64 → 256, num_warps"));
    assert!(turned(KERNEL, &["float8_e4m3fn", "float16"])[1].contains("BK 32 → 128"));
    assert!(turned(KERNEL, &["int8", "int32"])[1].contains("BK 32 → 128"));
    assert_eq!(turned(KERNEL, &[]), half);
}

#[test]
fn a_short_side_stays() {
    let flat = turned(&KERNEL.replace("BM=64", "BM=16"), &["float16"]);
    assert!(!flat.is_empty() && flat.iter().all(|it| !it.contains("BM")), "{flat:?}");
    assert_eq!(flat[0], "BK 32 → 128, num_stages 3 → 4");
}

#[test]
fn a_summed_size_that_is_a_side_of_another_product_is_kept() {
    let all = turned(ATTENTION, &["float16"]);
    assert_eq!(all.len(), GIVEN.len());
    assert_eq!(all[1], "BM 32 → 128, BN 32 → 64, num_warps 4 → 8");
    assert!(all.iter().all(|it| !it.contains("D ")), "{all:?}");
}

#[test]
fn products_with_computed_sizes_get_no_tile_combinations() {
    assert!(turned(&KERNEL.replace("BN=64", "BN=width(b)"), &[]).is_empty());
    assert!(turned(&KERNEL.replace("tl.dot(x, y)", "tl.sum(x) * tl.sum(y)"), &[]).is_empty());
}

#[test]
fn several_configurations_are_replaced_by_one_combination() {
    let configs = "[triton.Config({\"BM\": 32, \"BN\": 64, \"BK\": 32}, num_warps=4), triton.Config({\"BM\": 64, \"BN\": 64, \"BK\": 32})]";
    let tuned = format!("@triton.autotune(\n    configs={configs},\n    key=[\"M\"],\n)\n@triton.jit");
    let text = KERNEL.replace("@triton.jit", &tuned).replace(", BM=64, BN=64, BK=32)", ")");
    let of = |text: &str| {
        let candidate = Candidate::original(text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
        let turns = ProductTiles.turns(&subject, &mut Rng::new(1));
        turns.iter().map(|turn| (describe(&turn.changes), candidate.with(&turn.edits, &turn.changes).text)).collect()
    };
    let turns: Vec<(String, String)> = of(&text);
    let (said, new) = &turns[0];
    assert!(said.starts_with("one configuration instead of 2, "), "{said}");
    let line = new.lines().find(|line| line.contains("configs=")).unwrap();
    assert_eq!(line, "    configs=[triton.Config({\"BM\": 128, \"BN\": 256, \"BK\": 64}, num_warps=8)],");
    // All proposals for the remaining configuration are proposals for it alone.
    let only = text
        .replace(configs, &configs.replace("triton.Config({\"BM\": 32, \"BN\": 64, \"BK\": 32}, num_warps=4), ", ""));
    let alone: Vec<String> = of(&only).into_iter().map(|(_, text)| text).collect();
    assert_eq!(turns.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), alone);
}
