use protocol::{LaunchRecord, Workload};
use rules::apply_edits;

use super::*;
use crate::candidate::Candidate;

fn turned(text: &str, launches: &[i64]) -> Vec<(Proposal, String)> {
    let candidate = Candidate::original(text);
    let launch = LaunchRecord { kernel: "k".to_owned(), grid: launches.to_vec(), ..LaunchRecord::default() };
    let workload = Workload { entry: "run".to_owned(), launches: vec![launch], ..Workload::default() };
    let subject = Subject::new(&candidate, text, "k", &workload).unwrap();
    let turns = Persistent.turns(&subject, &mut Rng::new(1));
    turns.into_iter().map(|turn| (turn.clone(), apply_edits(text, &turn.edits))).collect()
}

fn rewritten(text: &str) -> Option<String> {
    turned(text, &[]).into_iter().nth(1).map(|(_, text)| text)
}

const ROWS: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, y_ptr, stride, n, B: tl.constexpr):
    '''Rows:
    one for each program.'''
    # the row
    row = tl.program_id(0)
    x_ptr += row * stride
    cols = tl.arange(0, B)  # all of it

    if n > 8:
        # long
        y_ptr += row * stride + 1
    x = tl.load(x_ptr + cols,
                mask=cols < n)
    tl.store(y_ptr + cols, x.to(y_ptr.dtype.element_ty), mask=cols < n)  # end
# of it

def run(x):
    y = torch.empty_like(x)
    m, n = x.shape
    k[(m,)](x, y, x.stride(0), n, B=64)
    return y
";

#[test]
fn programs_over_rows_become_a_loop() {
    let expected = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x_ptr, y_ptr, stride, n, B: tl.constexpr, programs):
    '''Rows:
    one for each program.'''
    # the row
    for program in range(tl.program_id(0), programs, tl.num_programs(0)):
        y_ptr_of_program = y_ptr
        row = program
        x_ptr_of_program = x_ptr + row * stride
        cols = tl.arange(0, B)  # all of it

        if n > 8:
            # long
            y_ptr_of_program += row * stride + 1
        x = tl.load(x_ptr_of_program + cols,
                    mask=cols < n)
        tl.store(y_ptr_of_program + cols, x.to(y_ptr_of_program.dtype.element_ty), mask=cols < n)  # end
# of it

def run(x):
    y = torch.empty_like(x)
    m, n = x.shape
    multiprocessors = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1
    k[(min(m, 2 * multiprocessors),)](x, y, x.stride(0), n, B=64, programs=m)
    return y
";
    assert_eq!(rewritten(ROWS).unwrap(), expected);
    assert_eq!(rewritten(expected), None, "once is enough");
    assert_eq!(rewritten(&ROWS.replace("(m,)", "(m, 1, 1)")).unwrap(), expected, "axes of one program are none");
    let turns = turned(ROWS, &[4096]);
    assert_eq!(turns.len(), PROGRAMS.len() + 5);
    assert!(turns[4].1.contains("(min(m, 16 * multiprocessors),)"), "{}", turns[4].1);
    let (pipelined, text) = &turns[7];
    let told = Candidate::changed(text, pipelined.changes.clone()).describe();
    assert_eq!(told, "a loop over the programs, programs per multiprocessor = 4, num_stages of loop 1 = 3");
    assert!(text.contains("in tl.range(tl.program_id(0), programs, tl.num_programs(0), num_stages=3):"), "{text}");
    let looped = ROWS.replace("    x = tl.load(x_ptr + cols,\n                mask=cols < n)\n", "    x = tl.zeros([B], tl.float32)\n    for at in range(0, n, B):\n        x += tl.load(x_ptr + at + cols, mask=cols + at < n)\n");
    assert_eq!(turned(&looped, &[4096]).len(), PROGRAMS.len(), "the inner loop is the one to be pipelined");
    assert_eq!(turned(ROWS, &[128]), [], "there are no more programs than multiprocessors");
}

const TILES: &str = "import torch
import triton
import triton.language as tl

@triton.autotune(configs=[triton.Config({'BM': 64, 'BN': 64}), triton.Config({'BM': 128, 'BN': 64})], key=['M'])
@triton.jit
def k(a, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)
    cols = tl.program_id(axis=1) * BN + tl.arange(0, BN)
    column = tl.program_id(1)
    tl.store(c + rows[:, None] * N + cols, tl.dot(a, a) + tl.num_programs(0))

def run(a, heads):
    M, N = a.shape
    grid = lambda META: (triton.cdiv(M, META['BM']), triton.cdiv(N, META['BN']))
    k[grid](a, a, M, N)
";

#[test]
fn two_axis_grids_split_the_loop_index() {
    let new = rewritten(TILES).unwrap();
    let kernel = "def k(a, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    programs_0 = tl.cdiv(M, BM)
    programs_1 = tl.cdiv(N, BN)
    for program in range(tl.program_id(0), programs_0 * programs_1, tl.num_programs(0)):
        rows = tl.cast(program % programs_0, tl.int64) * BM + tl.arange(0, BM)
        cols = (program // programs_0) * BN + tl.arange(0, BN)
        column = program // programs_0
        tl.store(c + rows[:, None] * N + cols, tl.dot(a, a) + programs_0)
";
    assert!(new.contains(kernel), "{new}");
    let host =
        "    multiprocessors = torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 1
    grid = lambda META: (min(triton.cdiv(M, META['BM']) * triton.cdiv(N, META['BN']), 2 * multiprocessors),)
    k[grid](a, a, M, N)
";
    assert!(new.ends_with(host), "{new}");
    assert_eq!(turned(TILES, &[]).len(), OF_PRODUCTS.len());

    // A number that the kernel does not have is passed, unless it depends on the configuration.
    let passed = rewritten(&TILES.replace("triton.cdiv(N, META['BN'])", "heads * 2")).unwrap();
    assert!(passed.contains("BN: tl.constexpr, programs_1):\n    programs_0 = tl.cdiv(M, BM)\n    for"), "{passed}");
    assert!(passed.contains("META['BM']) * (heads * 2), 2 *"), "{passed}");
    assert!(passed.ends_with("k[grid](a, a, M, N, programs_1=heads * 2)\n"), "{passed}");
    assert_eq!(rewritten(&TILES.replace("cdiv(N, META['BN'])", "cdiv(heads, META['BN'])")), None);
}

#[test]
fn arguments_after_unpacked_ones_are_matched_from_the_end() {
    let text = ROWS.replace("(x, y, x.stride(0), n, B=64)", "(x, *rest, m, B=64)");
    let new = rewritten(&text).unwrap();
    assert!(new.contains("(tl.program_id(0), n, tl.num_programs(0))") && new.contains("(x, *rest, m, B=64)"), "{new}");
}

#[test]
fn unsupported_kernels_do_not_become_persistent() {
    for (old, new) in [
        ("    x = tl.load", "    if n > 9:\n        return\n    x = tl.load"),
        ("tl.program_id(0)", "tl.program_id(1)"),
        ("tl.program_id(0)", "tl.program_id(B)"),
        ("    row = tl.program_id(0)\n", "    row = 1\n"),
        ("    row = tl.program_id(0)\n", "    row = tl.program_id(0)\n    B = 2\n"),
        ("tl.arange(0, B)", "other(B)"),
        ("    cols = ", "    '''two\n    lines'''\n    cols = "),
        ("    cols = tl", "    for i in range(row, n, 132):\n        pass\n    cols = tl"),
        ("    cols = tl", "    for i in range(tl.program_id(0), n, 132):\n        pass\n    cols = tl"),
        ("import torch\n", ""),
        ("(m,)", "(m, 1, 2)"),
        ("(m,)", "(f(m),)"),
        ("(m,)", "m"),
        ("    return y", "    k[(m,)](x, y, x.stride(0), n, B=64)"),
        ("@triton.jit\n", "@other\n@triton.jit\n"),
        ("k[(m,)](x, y", "grid = (m,)\n    m = 7\n    k[grid](x, y"),
        ("(x, y, x.s", "(x.clone(), torch.empty_like(x), x.s"),
    ] {
        assert_eq!(ROWS.matches(old).count(), 1, "{old}");
        assert_eq!(rewritten(&ROWS.replace(old, new)), None, "{new}");
    }
}

#[test]
fn a_products_loop_is_flattened_with_the_program_loop() {
    let product = "import torch
import triton
import triton.language as tl

@triton.jit
def k(a, b, c, N, K, B: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for i in range(0, K, B):
        depth = i + tl.arange(0, B)
        acc += tl.dot(tl.load(a + at[:, None] * K + depth), tl.load(b + depth[:, None] * B + tl.arange(0, B)))
    tl.store(c + at[:, None] * B + tl.arange(0, B), acc)

def run(a, b, c, N, K):
    k[(triton.cdiv(N, 64),)](a, b, c, N, K, B=64)
";
    let kinds = |text: &str| -> Vec<String> { turned(text, &[]).into_iter().map(|(turn, _)| turn.kind).collect() };
    assert_eq!(kinds(product), ["persistent", "persistent", "persistent", "persistent flattened"]);
    let (turn, text) = turned(product, &[]).pop().unwrap();
    let head = "    for program in tl.range(tl.program_id(0), tl.cdiv(N, B), tl.num_programs(0), flatten=True):\n        at = program * B";
    assert!(text.contains(head), "{text}");
    assert_eq!(turn.changes.last(), Some(&Change::Structure("flatten for loop 1".to_owned())));
    // With two loops, or none, there is nothing to merge.
    let two = product.replace("    tl.store", "    for i in range(N):\n        acc += i\n    tl.store");
    assert!(!kinds(&two).contains(&"persistent flattened".to_owned()));
}

#[test]
fn a_tile_size_in_the_grid_stays_tied_to_its_tile() {
    let host = |grid: &str, tile: i64| {
        format!(
            "import torch\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x_ptr, n, B: tl.constexpr):\n    at = tl.program_id(0) * B + tl.arange(0, B)\n    tl.store(x_ptr + at, 0, mask=at < n)\n\n\
             def run(x):\n    n = x.numel()\n    k[({grid},)](x, n, B={tile})\n"
        )
    };
    for (grid, count, twice) in [
        ("triton.cdiv(n, 64)", "tl.cdiv(n, B)", "triton.cdiv(n, 128)"),
        ("(n + 63) // 64", "(n + (B - 1)) // B", "(n + 127) // 128"),
    ] {
        let text = host(grid, 64);
        let persistent = rewritten(&text).unwrap();
        assert!(persistent.contains(&format!("range(tl.program_id(0), {count}, ")), "{persistent}");
        let candidate = Candidate::original(&persistent);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let setting = subject.knobs.iter().map(|knob| if knob.name == "B" { 128 } else { knob.current }).collect();
        let turned = apply_edits(&persistent, &subject.turn("B up", &setting).edits);
        assert!(turned.contains(&format!("min({twice}, ")) && turned.contains("B=128"), "{turned}");
    }
}
