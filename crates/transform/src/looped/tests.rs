use protocol::{LaunchRecord, Workload};

use super::*;
use crate::candidate::Candidate;

const HEAD: &str = "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\n";

fn workload() -> Workload {
    Workload { entry: "run".to_owned(), ..Workload::default() }
}

/// The changes of each proposal in words, and the resulting text.
fn turned(text: &str, workload: &Workload) -> Vec<(String, String)> {
    let candidate = Candidate::original(text);
    let subject = Subject::new(&candidate, text, "k", workload).unwrap();
    let turns = Looped.turns(&subject, &mut Rng::new(1));
    let made = turns.iter().map(|turn| candidate.with(&turn.edits, &turn.changes));
    made.map(|made| (made.describe(), made.text)).collect()
}

fn looped(text: &str) -> Option<String> {
    turned(text, &workload()).into_iter().next().map(|(_, text)| text)
}

const RUN: &str = "
def run(x, w):
    y = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(x.shape[1])
    k[(x.shape[0],)](x, w, y, x.stride(0), x.shape[1], BLOCK, num_warps=8)
    return y
";

#[test]
fn a_softmax_has_a_loop_for_its_maximum_its_sum_and_its_result() {
    let text = format!(
        "{HEAD}def k(x, w, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    # Columns.
    cols = tl.arange(0, BLOCK)
    mask = cols < n

    v = tl.load(x + row * stride + cols, mask=mask, other=-float(\"inf\"))  # as it is
    v = tl.exp(v.to(tl.float32) - tl.max(v, axis=0))
    # Where it goes.
    out = y + row * n
    tl.store(out + cols, v / tl.sum(v), mask)  # done
{RUN}"
    );
    let expected = format!(
        "{HEAD}def k(x, w, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)

    partial_max = tl.full([BLOCK], float(\"-inf\"), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        # Columns.
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        v = tl.load(x + row * stride + cols, mask=mask, other=-float(\"inf\"))  # as it is
        partial_max = tl.maximum(partial_max, tl.where(mask, v, float(\"-inf\")))
    row_max = tl.max(partial_max, axis=0)
    # Where it goes.
    out = y + row * n
    partial_sum = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        v = tl.load(x + row * stride + cols, mask=mask, other=-float(\"inf\"))  # as it is
        v = tl.exp(v.to(tl.float32) - row_max)
        partial_sum += tl.where(mask, v, 0.0)
    row_sum = tl.sum(partial_sum)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n
        v = tl.load(x + row * stride + cols, mask=mask, other=-float(\"inf\"))  # as it is
        v = tl.exp(v.to(tl.float32) - row_max)
        tl.store(out + cols, v / row_sum, mask)  # done
{}",
        RUN.replace("x.shape[1], BLOCK, num", "x.shape[1], 1024, num")
    );
    let turns = turned(&text, &workload());
    assert_eq!(turns[0].1, expected);
    let said: Vec<&String> = turns.iter().map(|(said, _)| said).collect();
    assert_eq!(
        said,
        [1024, 2048, 4096, 8192].map(|tile| format!("loops over the row, BLOCK = {tile}")).iter().collect::<Vec<_>>()
    );
    assert_eq!(looped(&expected), None, "there are loops already");
}

/// A norm with common features of such kernels: pointers that advance, conditions on constexprs, results beside the
/// row.
#[test]
fn independent_sums_share_a_loop() {
    let text = format!(
        "{HEAD}def k(x, w, b, y, means, start, n, eps, HAS_BIAS: tl.constexpr, WIDE: tl.constexpr):
    '''Normalizes.'''
    row = tl.program_id(0).to(tl.int64)
    x += row * start
    y += row * start
    cols = tl.arange(0, WIDE)
    v = tl.load(x + cols, mask=cols < n, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    var = tl.sum(
        v * v,
        axis=0,
    ) / n - mean * mean  # may cancel

    tl.store(means + row, mean)
    v = (v - mean) * tl.rsqrt(var + eps)

    weight = tl.load(w + cols, mask=cols < n)
    v = v * weight
    # The bias, if any.
    if HAS_BIAS:
        bias = tl.load(b + cols, mask=cols < n)
        v = v + bias
    tl.store(y + cols, v, mask=cols < n)

def run(x, w, b):
    k[(x.shape[0],)](x, w, b, x, x, x.stride(0), x.shape[1], 1e-5, True, WIDE=2048)
"
    );
    let expected = format!(
        "{HEAD}def k(x, w, b, y, means, start, n, eps, HAS_BIAS: tl.constexpr, WIDE: tl.constexpr):
    '''Normalizes.'''
    row = tl.program_id(0).to(tl.int64)
    x += row * start
    y += row * start
    partial_sum = tl.zeros([WIDE], dtype=tl.float32)
    partial_sum_2 = tl.zeros([WIDE], dtype=tl.float32)
    for start_2 in range(0, n, WIDE):
        cols = start_2 + tl.arange(0, WIDE)
        v = tl.load(x + cols, mask=cols < n, other=0.0).to(tl.float32)
        partial_sum += tl.where(cols < n, v, 0.0)
        partial_sum_2 += tl.where(cols < n, v * v, 0.0)
    mean = tl.sum(partial_sum, axis=0) / n
    var = tl.sum(
        partial_sum_2,
        axis=0,
    ) / n - mean * mean  # may cancel

    tl.store(means + row, mean)

    for start_2 in range(0, n, WIDE):
        cols = start_2 + tl.arange(0, WIDE)
        v = tl.load(x + cols, mask=cols < n, other=0.0).to(tl.float32)
        v = (v - mean) * tl.rsqrt(var + eps)
        weight = tl.load(w + cols, mask=cols < n)
        v = v * weight
        # The bias, if any.
        if HAS_BIAS:
            bias = tl.load(b + cols, mask=cols < n)
            v = v + bias
        tl.store(y + cols, v, mask=cols < n)

def run(x, w, b):
    k[(x.shape[0],)](x, w, b, x, x, x.stride(0), x.shape[1], 1e-5, True, WIDE=1024)
"
    );
    assert_eq!(turned(&text, &workload()), [("loops over the row, WIDE 2048 → 1024".to_owned(), expected)]);
}

#[test]
fn each_row_of_a_loop_over_rows_gets_its_own_loops() {
    let text = format!(
        "{HEAD}@helped
def scaled(v, s):
    return v * tl.sigmoid(s)

@triton.jit
def k(x, w, y, m, n, BLOCK: tl.constexpr):
  at = tl.arange(0, BLOCK)
  # The same for all rows.
  weight = tl.load(w + at, mask=at < n)

  for row in range(tl.program_id(0), m, tl.num_programs(0)):
    v = tl.load(x + row * n + at, (at < n) & (at > 0), other=0.0)
    low = tl.min(tl.abs(v - tl.max(v)))
    tl.store(y + row * n + at, scaled(v - low, weight), mask=n > at)
{RUN}"
    )
    .replace("@triton.jit\n@helped", "@triton.jit");
    let text = looped(&text).unwrap();
    let body = "def k(x, w, y, m, n, BLOCK: tl.constexpr):

  for row in range(tl.program_id(0), m, tl.num_programs(0)):
    partial_max = tl.full([BLOCK], float(\"-inf\"), dtype=tl.float32)
    for start in range(0, n, BLOCK):
      at = start + tl.arange(0, BLOCK)
      v = tl.load(x + row * n + at, (at < n) & (at > 0), other=0.0)
      partial_max = tl.maximum(partial_max, tl.where(at < n, v, float(\"-inf\")))
    row_max = tl.max(partial_max)
    partial_min = tl.full([BLOCK], float(\"inf\"), dtype=tl.float32)
    for start in range(0, n, BLOCK):
      at = start + tl.arange(0, BLOCK)
      v = tl.load(x + row * n + at, (at < n) & (at > 0), other=0.0)
      partial_min = tl.minimum(partial_min, tl.where(at < n, tl.abs(v - row_max), float(\"inf\")))
    low = tl.min(partial_min)
    for start in range(0, n, BLOCK):
      at = start + tl.arange(0, BLOCK)
      # The same for all rows.
      weight = tl.load(w + at, mask=at < n)
      v = tl.load(x + row * n + at, (at < n) & (at > 0), other=0.0)
      tl.store(y + row * n + at, scaled(v - low, weight), mask=n > at)

";
    assert!(text.contains(body), "{text}");
}

#[test]
fn the_tile_becomes_smaller() {
    let text = |tile: &str| {
        format!(
            "{HEAD}def k(x, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(x + tl.program_id(0) * n + at, 1.0, mask=at < n)

# warpsmith: workload entry=k[4] x=f32[4,5000] n=5000 B=8192

def run(x):
    B = {tile}
    k[(4,)](x, x.shape[1], B)
"
        )
    };
    let tiles = |text: &str, workload: &Workload| {
        let said = turned(text, workload).into_iter();
        said.map(|(said, _)| said.strip_prefix("loops over the row, ").unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tiles(&text("4096"), &workload()), ["B 4096 → 1024", "B 4096 → 2048"]);
    let computed = text("max(16, triton.next_power_of_2(x.shape[1]))");
    assert_eq!(tiles(&computed, &workload()), ["B = 1024", "B = 2048", "B = 4096", "B = 8192"]);
    let arguments = vec![("B".to_owned(), ArgumentValue::Int(2048))];
    let launch = LaunchRecord { kernel: "k".to_owned(), arguments, ..LaunchRecord::default() };
    assert_eq!(tiles(&computed, &Workload { launches: vec![launch], ..workload() }), ["B = 1024"]);

    let comment = workload::workloads_of_comments(std::path::Path::new("/f.py"), &computed).unwrap().remove(0);
    let turns = turned(&computed, &comment);
    assert_eq!(turns[0].0, "loops over the row, B 8192 → 1024");
    assert!(
        turns[0].1.contains("n=5000 B=1024\n") && turns[0].1.contains("k[(4,)](x, x.shape[1], B)"),
        "{}",
        turns[0].1
    );
}

#[test]
fn kernels_with_unsupported_row_work_get_no_loops() {
    let text = |body: &str| {
        format!(
            "{HEAD}def k(x, w, y, stride, n, BLOCK: tl.constexpr):\n    row = tl.program_id(0)\n    at = tl.arange(0, BLOCK)\n    m = at < n\n{body}{RUN}"
        )
    };
    let store = "    tl.store(y + row * n + at, tl.load(x + row * n + at, mask=m), mask=m)\n";
    assert!(looped(&text(store)).is_some());
    for body in [
        // No length of the row, or several.
        "    tl.store(y + at, tl.load(x + at))\n",
        "    tl.store(y + at, tl.load(x + at, mask=m), mask=at < stride)\n",
        "    tl.store(y + at, 1.0, mask=m | (at == 0))\n",
        "    n = n - 1\n    tl.store(y + at, 1.0, mask=m)\n",
        // Operations that are not elementwise.
        "    tl.store(y + at, tl.cumsum(tl.load(x + at, mask=m), 0), mask=m)\n",
        "    tl.store(y + at, tl.load(x + at, mask=m)[:, None], mask=m)\n",
        "    tl.store(y + at, helper(tl.load(x + at, mask=m)), mask=m)\n",
        "    tl.atomic_add(y + at, 1.0, mask=m)\n",
        "    tl.store(y + row, tl.sum(tl.load(x + at, mask=m), axis=0, keep_dims=True))\n",
        "    tl.store(y + row * BLOCK + at, 1.0, mask=m)\n",
        "    tl.store(y + tl.arange(0, 16), 1.0)\n    tl.store(y + at, 1.0, mask=m)\n",
        // One parameter for both loads and stores.
        "    tl.store(x + at, tl.load(x + at, mask=m) + 1.0, mask=m)\n",
        "    z = x + row\n    tl.store(y + at, 1.0, mask=m)\n    tl.store(z + at, tl.load(x + at, mask=m), mask=m)\n",
        "    tl.store(y + at, 1.0, mask=m)\n    tl.store(y + stride + at, 2.0, mask=m)\n",
        // Scalars that change before the loop.
        "    a = row\n    v = tl.load(x + a + at, mask=m)\n    a += 1\n    tl.store(y + a, tl.sum(v))\n",
        // Values that are carried from row to row.
        "    v = tl.zeros([BLOCK], tl.float32)\n    for i in range(4):\n        v += tl.load(x + i * n + at, mask=m)\n        tl.store(y + i, tl.sum(v))\n",
        "    v = tl.load(x + at, mask=m)\n    tl.store(y + row, tl.sum(v))\n    for i in range(4):\n        tl.store(w + i * n + at, v, mask=m)\n",
        // Sums of integers, and sums under a condition.
        "    tl.store(y + row, tl.sum((tl.load(x + at, mask=m) > 0).to(tl.int32)))\n",
        "    if row > 2:\n        tl.store(y + row, tl.sum(tl.load(x + at, mask=m)))\n",
        "    if row > 2:\n        v = tl.load(x + at, mask=m)\n        row = 2\n",
        // A store that an early return may skip.
        "    tl.store(y + at, 1.0, mask=m)\n    if row > 2:\n        return\n    tl.store(w + at, 1.0, mask=m)\n",
        // Statements whose text cannot be moved.
        "    v = tl.load(x + at, mask=m); tl.store(y + at, v, mask=m)\n",
        "    v = tl.load(x + at, \\\n        mask=m)\n    tl.store(y + at, v, mask=m)\n",
    ] {
        assert_eq!(looped(&text(body)), None, "{body}");
    }
    for (old, new) in [
        ("@triton.jit", "@triton.heuristics(values)\n@triton.jit"),
        ("x.shape[1], BLOCK, num_warps=8", "x.shape[1], *block"),
    ] {
        assert_eq!(looped(&text(store).replace(old, new)), None, "{new}");
    }
}
