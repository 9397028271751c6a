use protocol::Workload;
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;

const HEAD: &str = "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\n";

fn lifted(text: &str) -> Option<String> {
    lifted_by(text, RowSource::Programs(0))
}

fn lifted_by(text: &str, way: RowSource) -> Option<String> {
    let candidate = Candidate::original(text);
    let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    Some(apply_edits(text, &lift(&subject, way, 4)?.edits))
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
fn values_carried_by_loops_become_columns() {
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
fn rows_may_lie_along_any_axis_of_the_grid() {
    let text = format!(
        "{HEAD}def k(x, y, n, m, BLOCK: tl.constexpr):
    batch = tl.program_id(0)
    column = tl.program_id(1)
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + batch * n * m + at * m + column, mask=at < n, other=0.0))
    tl.store(y + batch * m + column, total)

def run(x):
    k[(x.shape[0], x.shape[2])](x, y, x.shape[1], x.shape[2], BLOCK=64)
"
    );
    let columns = lifted_by(&text, RowSource::Programs(1)).unwrap();
    for line in [
        "    rows = (tl.program_id(1) * ROWS + tl.arange(0, ROWS))[:, None]\n    in_rows = rows < row_count\n    batch = tl.program_id(0)\n    column = rows\n",
        "mask=(at < n) & in_rows, other=0.0), axis=1, keep_dims=True)\n",
        "    tl.store(y + batch * m + column, total, mask=in_rows)\n",
        "k[lambda meta: (x.shape[0], triton.cdiv(x.shape[2], meta[\"ROWS\"]))](x, y, x.shape[1], x.shape[2], BLOCK=64, row_count=x.shape[2], ROWS=4)\n",
    ] {
        assert!(columns.contains(line), "{line}\n{columns}");
    }
    let batches = lifted(&text).unwrap();
    assert!(batches.contains("batch = rows\n    column = tl.program_id(1)\n"), "{batches}");
    assert_eq!((lifted_by(&text, RowSource::Programs(2)), lifted_by(&text, RowSource::Rounds)), (None, None));
    // A grid with three axes, two of which have size 1.
    let formal = text.replace("column = tl.program_id(1)", "column = 0").replace("x.shape[2])](", "1, 1)](");
    assert!(lifted(&formal).unwrap().contains("(triton.cdiv(x.shape[0], meta[\"ROWS\"]), 1, 1)"), "{formal}");
}

#[test]
fn loops_over_rows_are_lifted_to_several_rows() {
    let text = format!(
        "{HEAD}def k(x, y, stride, count, n, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    first = tl.program_id(0)
    step = tl.num_programs(0)
    for row in tl.range(first, count, step, num_stages=num_stages):
        at = tl.arange(0, BLOCK)
        v = tl.load(x + row * stride + at, mask=at < n, other=0.0)
        tl.store(y + row * stride + at, v - tl.max(v, axis=0), mask=at < n)

def run(x):
    k[(min(1024, x.shape[0]), 1, 1)](y, x, x.stride(0), *x.shape, 512, 2, num_warps=8)
"
    );
    let unpacked = lifted_by(&text, RowSource::Rounds).unwrap();
    assert!(unpacked.contains("*x.shape, 512, 2, num_warps=8, ROWS=4)"), "{unpacked}");
    let text = text.replace("*x.shape", "x.shape[0], x.shape[1]");
    // The grid's size is passed as a parameter, and the indices have 64 bits.
    let host = "k[(programs,)](y, x, x.stride(0), x.shape[0], x.shape[1], 512, programs, num_warps=8)";
    let old = text.lines().last().unwrap().trim();
    let by_grid =
        text.replace(old, host).replace("step = tl.num_programs(0)\n    ", "").replace(", num_stages=num_stages", "");
    let by_grid =
        by_grid.replace("count, step", "count, num_stages").replace("program_id(0)", "program_id(0).to(tl.int64)");
    let dealt = lifted_by(&by_grid, RowSource::Rounds).unwrap();
    assert!(dealt.contains("tl.range(first * ROWS, count, num_stages * ROWS):"), "{dealt}");
    assert_eq!(lifted_by(&by_grid.replace("[(programs,)]", "[(7,)]"), RowSource::Rounds), None);
    let rounds = lifted_by(&text, RowSource::Rounds).unwrap();
    for line in [
        "BLOCK: tl.constexpr, num_stages: tl.constexpr, ROWS: tl.constexpr):\n    first = tl.program_id(0)\n",
        "    for first_row in tl.range(first * ROWS, count, step * ROWS, num_stages=num_stages):
        row = (first_row + tl.arange(0, ROWS))[:, None]
        in_rows = row < count
        at = tl.arange(0, BLOCK)[None, :]\n",
        "mask=(at < n) & in_rows, other=0.0)\n",
        "v - tl.max(v, axis=1, keep_dims=True), mask=(at < n) & in_rows)\n",
        "k[(min(1024, x.shape[0]), 1, 1)](y, x, x.stride(0), x.shape[0], x.shape[1], 512, 2, num_warps=8, ROWS=4)\n",
    ] {
        assert!(rounds.contains(line), "{line}\n{rounds}");
    }
    assert_eq!((lifted(&text), lifted_by(&rounds, RowSource::Rounds)), (None, None));
    for (from, to) in [
        ("step = tl.num_programs(0)", "step = 2"),
        ("first = tl.program_id(0)", "first = tl.program_id(0) + 1"),
        ("    for row", "    step = step * 2\n    for row"),
        ("        at = ", "        count = count - 1\n        at = "),
        ("tl.store(y + row * stride + at", "tl.store(y + first * stride + at"),
        ("range(first, count, step,", "range(first, 2 * count, step,"),
        ("mask=at < n)\n\ndef", "mask=at < n)\n    tl.store(y + row, 0.0)\n\ndef"),
    ] {
        assert_eq!(lifted_by(&text.replace(from, to), RowSource::Rounds), None, "{to}");
    }
}

#[test]
fn kernels_with_unknown_row_dependence_are_not_lifted() {
    let text = |body: &str, grid: &str| {
        format!(
            "{HEAD}def k(x, y, n, B: tl.constexpr):\n    row = tl.program_id(0)\n    at = tl.arange(0, B)\n{body}\ndef run(x):\n    m = 7\n    k[{grid}](x, x, 7, B=8)\n"
        )
    };
    let store = "    tl.store(y + row * n + at, tl.load(x + row * n + at))\n";
    let plain = lifted(&text(store, "(m,)")).unwrap();
    // An elementwise helper keeps its meaning.
    let helped = text("    tl.store(y + row * n + at, helper(tl.load(x + row * n + at)))\n", "(m,)");
    let helper = "@triton.jit\ndef helper(v):\n    return v * tl.sigmoid(v)\n\n";
    let helped = helped.replace("@triton.jit\ndef k", &format!("{helper}@triton.jit\ndef k"));
    assert!(lifted(&helped).unwrap().contains("helper(tl.load(x + row * n + at, mask=in_rows))"));
    // The grid may have a name, and the last parameter a default.
    let named = text(store, "grid").replace("    m = 7\n", "    m = 7\n    grid = (m,)\n");
    assert_eq!(lifted(&named).unwrap(), plain.replace("    m = 7\n", "    m = 7\n    grid = (m,)\n"));
    let default = text(store, "(m,)").replace("B: tl.constexpr", "B: tl.constexpr = 8");
    let head = "B: tl.constexpr = 8, row_count=0, ROWS: tl.constexpr = 1)";
    assert!(lifted(&default).unwrap().contains(head));
    for grid in ["()", "grid", "(f(m),)", "lambda meta: (m,)"] {
        assert_eq!(lifted(&text(store, grid)), None, "{grid}");
    }
    for body in [
        "    if row > 2:\n        tl.store(y + row * n + at, 1.0)\n",
        "    for i in range(row):\n        tl.store(y + row * n + at, 1.0)\n",
        "    tl.atomic_add(y + at, 1.0)\n",
        "    tl.atomic_add(y + at, row * n)\n",
        "    tl.atomic_add(y, tl.load(x + row * n + at))\n",
        "    tl.atomic_add(y + at, tl.load(x + row * n + at), mask=at < row)\n",
        "    v = tl.atomic_add(y + at, tl.load(x + row * n + at))\n",
        "    tl.store(y + at, tl.load(x + row * n + at))\n",
        "    tl.store(y + row * n + at, tl.cumsum(tl.load(x + row * n + at), 0))\n",
        "    tl.store(y + row * n + at, helper(tl.load(x + row * n + at)))\n",
        "    tl.store(y + row * n + at, tl.load(x + row * n + at)[:, None])\n",
        "    tl.store(y + row * n + at, tl.num_programs(0))\n",
        "    count = 0\n    for i in range(n):\n        count += tl.sum(tl.load(x + row * n + at))\n    tl.store(y + row, count)\n",
        "    tl.store(y + at, 1.0)\n",
    ] {
        assert_eq!(lifted(&text(body, "(m,)")), None, "{body}");
    }
}

#[test]
fn rows_added_to_one_address_are_summed_first() {
    let text = |body: &str| {
        format!(
            "{HEAD}def k(x, y, n, B: tl.constexpr):\n    row = tl.program_id(0)\n    at = tl.arange(0, B)\n{body}\ndef run(x, m):\n    k[(m,)](x, x, 7, B=8)\n"
        )
    };
    for (body, expected) in [
        (
            "tl.atomic_add(y + at, tl.load(x + row * n + at) * 2, mask=at < n)",
            "tl.atomic_add(y + at, tl.sum(tl.where(in_rows, tl.load(x + row * n + at, mask=in_rows) * 2, 0), axis=0, keep_dims=True), mask=at < n)",
        ),
        (
            "tl.atomic_add(y, tl.sum(tl.load(x + row * n + at)))",
            "tl.atomic_add(y, tl.sum(tl.where(in_rows, tl.sum(tl.load(x + row * n + at, mask=in_rows), axis=1, keep_dims=True), 0)))",
        ),
        ("tl.atomic_add(y + row * n + at, 1.0)", "tl.atomic_add(y + row * n + at, 1.0, mask=in_rows)"),
    ] {
        let new = lifted(&text(&format!("    {body}\n"))).unwrap();
        assert!(new.contains(expected), "{new}");
    }
}

#[test]
fn annotated_constexpr_names_are_supported_in_lifted_kernels() {
    let body = "    row = tl.program_id(0)\n    half: tl.constexpr = D // 2\n    at = tl.arange(0, half)\n    tl.store(y + row * D + at, tl.load(x + row * D + at))\n";
    let text = format!("{HEAD}def k(x, y, D: tl.constexpr):\n{body}\ndef run(x, m):\n    k[(m,)](x, x, D=8)\n");
    assert!(lifted(&text).unwrap().contains("    half: tl.constexpr = D // 2\n    at = tl.arange(0, half)[None, :]\n"));
    assert_eq!(lifted(&text.replace("D // 2", "row")), None);
}
