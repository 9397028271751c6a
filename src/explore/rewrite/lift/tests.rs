use super::*;
use crate::explore::candidate::Candidate;
use crate::protocol::Workload;
use crate::rules::apply_edits;

const HEAD: &str = "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\n";

fn lifted(text: &str) -> Option<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    Some(apply_edits(text, &lift(&subject, 4)?.edits))
}

#[test]
fn a_softmax_takes_several_rows() {
    let text = format!(
        "{HEAD}def k(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)  # along the row
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask, other=-float(\"inf\")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + cols, v / tl.sum(v), mask)

def run(x):
    n_rows, n = x.shape
    k[(n_rows,)](x, y, x.stride(0), n, BLOCK=128, num_warps=1)
"
    );
    let expected = format!(
            "{HEAD}def k(x, y, stride, n, BLOCK: tl.constexpr, row_count, ROWS: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    in_rows = rows < row_count
    row = rows.to(tl.int64)
    cols = tl.arange(0, BLOCK)[None, :]  # along the row
    mask = cols < n
    v = tl.load(x + row * stride + cols, mask=mask & in_rows, other=-float(\"inf\")).to(tl.float32)
    v = tl.exp(v - tl.max(v, axis=1, keep_dims=True))
    tl.store(y + row * n + cols, v / tl.sum(v, axis=1, keep_dims=True), mask & in_rows)

def run(x):
    n_rows, n = x.shape
    k[lambda meta: (triton.cdiv(n_rows, meta[\"ROWS\"]),)](x, y, x.stride(0), n, BLOCK=128, num_warps=1, row_count=n_rows, ROWS=4)
"
        );
    assert_eq!(lifted(&text).unwrap(), expected);
    assert_eq!(lifted(&expected), None, "once is enough");
}

#[test]
fn loops_carry_columns() {
    let text = format!(
        "{HEAD}def k(x, w, y, n, BLOCK: tl.constexpr):
    '''Root mean square.'''
    row = tl.program_id(axis=0)
    total = 0.0
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, mask=at < n, other=0.0)
        acc += v * v
        total += tl.sum(v, 0)
    mean = tl.sum(acc, axis=0) / n + total
    tl.store(y + row, tl.load(w + row) * mean)

def run(x):
    k[(x.shape[0],)](x, w, y, x.shape[1], BLOCK=64)
"
    );
    let text = lifted(&text).unwrap();
    for line in [
        "    '''Root mean square.'''\n    rows = (tl",
        "    total = tl.full((ROWS, 1), 0.0, tl.float32)\n",
        "    acc = tl.zeros([ROWS, BLOCK], dtype=tl.float32)\n",
        "at = start + tl.arange(0, BLOCK)[None, :]\n",
        "mask=(at < n) & in_rows, other=0.0)\n",
        "total += tl.sum(v, 1, keep_dims=True)\n",
        "tl.store(y + row, tl.load(w + row, mask=in_rows) * mean, mask=in_rows)\n",
        "(triton.cdiv(x.shape[0], meta[\"ROWS\"]),)](x, w, y, x.shape[1], BLOCK=64, row_count=x.shape[0], ROWS=4)\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn what_is_not_known_to_keep_its_meaning_is_left_alone() {
    let text = |body: &str, grid: &str| {
        format!(
            "{HEAD}def k(x, y, n, B: tl.constexpr):\n    row = tl.program_id(0)\n    at = tl.arange(0, B)\n{body}\ndef run(x):\n    m = 7\n    k[{grid}](x, x, 7, B=8)\n"
        )
    };
    let store = "    tl.store(y + row * n + at, tl.load(x + row * n + at))\n";
    let plain = lifted(&text(store, "(m,)")).unwrap();
    // A helper that works on each element alone keeps its meaning.
    let helped = text("    tl.store(y + row * n + at, helper(tl.load(x + row * n + at)))\n", "(m,)");
    let helper = "@triton.jit\ndef helper(v):\n    return v * tl.sigmoid(v)\n\n";
    let helped = helped.replace("@triton.jit\ndef k", &format!("{helper}@triton.jit\ndef k"));
    assert!(lifted(&helped).unwrap().contains("helper(tl.load(x + row * n + at, mask=in_rows))"));
    // A grid may have a name, and the last parameter a default.
    let named = text(store, "grid").replace("    m = 7\n", "    m = 7\n    grid = (m,)\n");
    assert_eq!(lifted(&named).unwrap(), plain.replace("    m = 7\n", "    m = 7\n    grid = (m,)\n"));
    let default = text(store, "(m,)").replace("B: tl.constexpr", "B: tl.constexpr = 8");
    let head = "B: tl.constexpr = 8, row_count=0, ROWS: tl.constexpr = 1)";
    assert!(lifted(&default).unwrap().contains(head));
    for grid in ["(m, 2)", "grid", "(f(m),)", "lambda meta: (m,)"] {
        assert_eq!(lifted(&text(store, grid)), None, "{grid}");
    }
    for body in [
        "    if row > 2:\n        tl.store(y + row * n + at, 1.0)\n",
        "    for i in range(row):\n        tl.store(y + row * n + at, 1.0)\n",
        "    tl.atomic_add(y + row * n + at, 1.0)\n",
        "    tl.store(y + at, tl.load(x + row * n + at))\n",
        "    tl.store(y + row * n + at, tl.cumsum(tl.load(x + row * n + at), 0))\n",
        "    tl.store(y + row * n + at, helper(tl.load(x + row * n + at)))\n",
        "    tl.store(y + row * n + at, tl.load(x + row * n + at)[:, None])\n",
        "    other = tl.program_id(1)\n    tl.store(y + row * n + at, other)\n",
        "    count = 0\n    for i in range(n):\n        count += tl.sum(tl.load(x + row * n + at))\n    tl.store(y + row, count)\n",
        "    tl.store(y + at, 1.0)\n",
    ] {
        assert_eq!(lifted(&text(body, "(m,)")), None, "{body}");
    }
}
