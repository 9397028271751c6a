use super::*;
use crate::syntax::Source;

const HEAD: &str = "
import torch
import triton
import triton.language as tl

@triton.jit
def k(a, b, c, n, m, BLOCK: tl.constexpr):
    tl.store(b + tl.arange(0, BLOCK), tl.load(a + tl.arange(0, BLOCK)))

";

/// What the launches of `def run…` pass, one line each: `name: value`.
fn passed_by(body: &str) -> Vec<String> {
    let text = format!("{HEAD}{body}");
    let module = Module::build(&Source::parse(text.as_str()));
    let run = HostRun::of(&module, &text, &module.hosts[0]);
    let mut shown = Vec::new();
    for launch in &run.launches {
        let kernel = module.kernel(module.launches[launch.launch].kernel.as_deref().unwrap()).unwrap();
        for param in &kernel.params {
            if let Some(value) = launch.value(&module, kernel, &param.name) {
                shown.push(format!("{}: {}", param.name, show(&run, value, launch)));
            }
        }
        let grid = launch
            .grid
            .as_ref()
            .map_or("?".to_owned(), |grid| grid.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        shown.push(format!("grid: {grid}"));
    }
    shown
}

fn show(run: &HostRun, value: &HostValue, launch: &HostLaunch) -> String {
    match value {
        HostValue::Tensor(id) => {
            let tensor = run.tensor(*id);
            let dtype = tensor.dtype.map_or("?".to_owned(), |dtype| dtype.to_string());
            let all = |numbers: Option<Vec<HostNumber>>| {
                numbers.map_or("?".to_owned(), |numbers| {
                    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
                })
            };
            let unset = if launch.unset.contains(&tensor.storage) && tensor.origin == TensorOrigin::Unset {
                " unset"
            } else {
                ""
            };
            format!("{dtype} [{}] by [{}]{unset}", all(tensor.shape.clone()), all(tensor.strides()))
        }
        value => value.number().to_string(),
    }
}

#[test]
fn tensors_have_types_sizes_and_strides() {
    let found = passed_by(
        "def run(x, w):
    rows, cols = x.shape
    x = x.contiguous()
    out = torch.empty((cols, rows), device=x.device, dtype=torch.float16)
    k[(rows,)](x, out, w.to(torch.int16), cols, out.stride(0), BLOCK=triton.next_power_of_2(cols))
",
    );
    assert_eq!(
        found,
        [
            "a: ? [x.shape[0], x.shape[1]] by [x.shape[1], 1]",
            "b: fp16 [x.shape[1], x.shape[0]] by [x.shape[0], 1] unset",
            "c: int16 [?] by [?]",
            "n: x.shape[1]",
            "m: x.shape[0]",
            "BLOCK: next_power_of_2(x.shape[1])",
            "grid: x.shape[0]",
        ]
    );
}

#[test]
fn branches_are_joined_and_loops_lose_what_they_change() {
    let found = passed_by(
        "def run(x, flag, n):
    block = 64
    if flag:
        block = 128
    total = 0
    for i in range(n):
        total += block
    if not x.is_contiguous():
        x = x.contiguous()
    y = torch.zeros_like(x, dtype=torch.float32)
    k[(triton.cdiv(n, block),)](x, y, None, total, (n + 31) // 32 * 32, BLOCK=block)
",
    );
    assert_eq!(
        found,
        [
            "a: ? [?] by [?]",
            "b: fp32 [?] by [?]",
            "c: ?",
            "n: total",
            "m: (((n + 31) // 32) * 32)",
            "BLOCK: 128 or 64",
            "grid: cdiv(n, 128 or 64)",
        ]
    );
}

#[test]
fn slices_and_transpositions_keep_the_strides_of_the_whole() {
    let found = passed_by(
        "def run(x, vocab):
    y = x.view(4, 100)
    z = torch.ones(30, 20, device='cuda')
    k[lambda meta: (triton.cdiv(vocab, meta['BLOCK']),)](z[:, :vocab], z.t(), z[:10], y.numel(), z[:, :vocab].stride(0), BLOCK=64)
",
    );
    assert_eq!(
        found,
        [
            "a: fp32 [30, vocab] by [20, 1]",
            "b: fp32 [20, 30] by [1, 20]",
            "c: fp32 [10, 20] by [20, 1]",
            "n: 400",
            "m: 20",
            "BLOCK: 64",
            "grid: cdiv(vocab, [BLOCK])",
        ]
    );
}

#[test]
fn circles_and_deep_expressions_are_unknown() {
    let deep = format!("{}1{}", "(1 + ".repeat(500), ")".repeat(500));
    let found = passed_by(&format!(
        "A = B
B = A
def run(x):
    k[(A,)](x, x, x, A, {deep}, BLOCK=64)
"
    ));
    assert_eq!(found[3..], ["n: ?", "m: ?", "BLOCK: 64", "grid: ?"]);
}

#[test]
fn gradients_and_written_memory_are_known() {
    let text = format!(
        "{HEAD}class F(torch.autograd.Function):
    @staticmethod
    def backward(ctx, grad):
        out = torch.empty(4, device='cuda')
        k[(1,)](grad, out, None, 1 if grad.numel() > 1 else 0, 2, BLOCK=4)
        k[(1,)](grad, out, None, 1, 2, BLOCK=4)
"
    );
    let module = Module::build(&Source::parse(text.as_str()));
    let run = HostRun::of(&module, &text, &module.hosts[0]);
    let kernel = &module.kernels[0];
    let gradient = run.launches[0].value(&module, kernel, "a").and_then(HostValue::tensor).unwrap();
    assert_eq!(run.tensor(gradient).origin, TensorOrigin::Gradient);
    assert_eq!(run.launches[0].value(&module, kernel, "n").unwrap().number().values(), Some(vec![1, 0]));
    let out = run.launches[0].value(&module, kernel, "b").and_then(HostValue::tensor).unwrap();
    let storage = run.tensor(out).storage;
    assert!(run.launches[0].unset.contains(&storage) && !run.launches[1].unset.contains(&storage));
}

#[test]
fn settled_comparisons_and_checked_sizes_are_noted() {
    let text = format!(
        "{HEAD}def run(x, y):
    x = x.contiguous()
    aligned = x.stride(-1) % 16 == 0 and y.stride(-1) % 16 == 0
    assert y.shape[0] <= 4096
    k[(1,)](x, y, None, 1, 2, BLOCK=4)
"
    );
    let module = Module::build(&Source::parse(text.as_str()));
    let run = HostRun::of(&module, &text, &module.hosts[0]);
    let settled: Vec<(&str, bool)> =
        run.settled.iter().map(|test| (&text[test.span.start..test.span.end], test.holds)).collect();
    assert_eq!(settled, [("x.stride(-1) % 16 == 0", false)]);
    assert!(run.is_checked("y.shape[0]") && !run.is_checked("y.shape[1]"));
}

/// What the launches that the file's own code makes pass, one line each.
fn passed_by_callers(body: &str) -> Vec<String> {
    let text = format!("{HEAD}{body}");
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let mut shown = Vec::new();
    for run in HostRun::of_callers(&module, &text, &Callers::of(&module, &source)) {
        for launch in &run.launches {
            let value =
                |name| launch.value(&module, module.kernel("k").unwrap(), name).map(|of| show(&run, of, launch));
            let all = ["a", "b", "n", "m"].into_iter().filter_map(|name| Some(format!("{name}: {}", value(name)?)));
            shown.push(all.collect::<Vec<_>>().join(" | "));
        }
    }
    shown
}

const RUN: &str = "
def run(x, scale=2):
    rows, cols = x.shape
    out = torch.empty_like(x)
    k[(rows,)](x, out, x, x.stride(0), cols * scale, BLOCK=64)
    return out
";

#[test]
fn the_main_block_says_with_what_functions_are_called() {
    let main = "
if __name__ == '__main__':
    device = 'cuda' if torch.cuda.is_available() else 'cpu'
    shape = (64, 300) if device == 'cuda' else (2, 3)
    x, y = (torch.randn(shape, device=device, dtype=torch.float16) for _ in range(2))
    run(run(x), scale=3)
";
    assert_eq!(
        passed_by_callers(&format!("{RUN}{main}")),
        [
            "a: fp16 [64, 300] by [300, 1] | b: fp16 [64, 300] by [300, 1] unset | n: 300 | m: 600",
            "a: fp16 [64, 300] by [300, 1] | b: fp16 [64, 300] by [300, 1] unset | n: 300 | m: 900",
        ]
    );
}

#[test]
fn functions_without_arguments_call_others() {
    let test = "
def compare(rows):
    return run(torch.ones(rows, 8))

def test_run():
    for rows in [4, 5]:
        compare(rows)
";
    assert_eq!(
        passed_by_callers(&format!("{RUN}{test}")),
        ["a: fp32 [4 or 5, 8] by [8, 1] | b: fp32 [4 or 5, 8] by [8, 1] unset | n: 8 | m: 16"]
    );
}

#[test]
fn apply_of_an_autograd_function_calls_forward() {
    let text = "
class Op(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        k[(1,)](x, x, x, n, n, BLOCK=64)

op = Op.apply

def main():
    op(torch.zeros(5), 7)
    Op.apply(torch.zeros(6), n=8)
";
    assert_eq!(
        passed_by_callers(text),
        [
            "a: fp32 [5] by [1] | b: fp32 [5] by [1] | n: 7 | m: 7",
            "a: fp32 [6] by [1] | b: fp32 [6] by [1] | n: 8 | m: 8"
        ]
    );
}

#[test]
fn calls_of_unknown_values_and_endless_recursion_end() {
    let text = "
def run(x, n):
    k[(1,)](x, x, x, n, n, BLOCK=64)
    run(x, n + 1)

def main():
    run(*things)
    run(other(), 3)
";
    let found = passed_by_callers(text);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].ends_with("n: 3 | m: 3") && found[3].ends_with("n: 6 | m: 6"), "{found:?}");
}

/// The size and block of the grid of the only launch in `def run…`.
fn tiles_of(body: &str) -> Option<(String, String)> {
    let text = format!("{HEAD}{body}");
    let module = Module::build(&Source::parse(text.as_str()));
    let run = HostRun::of(&module, &text, &module.hosts[0]);
    let (size, block) = run.launches[0].grid.as_ref()?[0].tiles()?;
    Some((size.to_string(), block.to_string()))
}

#[test]
fn grids_of_tiles_are_recognized_however_they_are_written() {
    for grid in ["triton.cdiv(n, B)", "(n + B - 1) // B", "(B + n - 1) // B", "(n + (B - 1)) // B"] {
        let found = tiles_of(&format!("def run(x, y, z, n, B):\n    k[({grid},)](x, y, z, n, n, BLOCK=B)\n"));
        assert_eq!(found, Some(("n".to_owned(), "B".to_owned())), "{grid}");
    }
    let with_number = "def run(x, y, z, n):\n    k[((n + 63) // 64,)](x, y, z, n, n, BLOCK=64)\n";
    assert_eq!(tiles_of(with_number), Some(("n".to_owned(), "64".to_owned())));
    for grid in ["n // B", "(n + B) // B", "(n + B - 1) // 64", "n"] {
        let found = tiles_of(&format!("def run(x, y, z, n, B):\n    k[({grid},)](x, y, z, n, n, BLOCK=B)\n"));
        assert_eq!(found, None, "{grid}");
    }
}

#[test]
fn what_is_not_followed_is_the_same_until_its_name_is_bound_anew() {
    let same = "def run(x, y, z):\n    n = count(x)\n    k[(triton.cdiv(n, 64),)](x, y, z, n, n, BLOCK=64)\n";
    let text = format!("{HEAD}{same}");
    let module = Module::build(&Source::parse(text.as_str()));
    let run = HostRun::of(&module, &text, &module.hosts[0]);
    let passed = |run: &HostRun| run.launches[0].value(&module, &module.kernels[0], "n").map(HostValue::number);
    let covered = |run: &HostRun| run.launches[0].grid.as_ref().unwrap()[0].tiles().unwrap().0.clone();
    assert!(passed(&run).unwrap().is(&covered(&run)));
    assert_eq!(passed(&run).unwrap().sources(), None, "nothing is known about it");
    let text =
        text.replace("    k[(triton.cdiv(n, 64),)]", "    grid = (triton.cdiv(n, 64),)\n    n = count(y)\n    k[grid]");
    let module = Module::build(&Source::parse(text.as_str()));
    let run = HostRun::of(&module, &text, &module.hosts[0]);
    let passed = run.launches[0].value(&module, &module.kernels[0], "n").map(HostValue::number).unwrap();
    assert!(!passed.is(&covered(&run)));
}

#[test]
fn the_top_level_is_run_where_it_launches_kernels() {
    let text = format!(
        "{HEAD}x = torch.zeros(100, device='cuda')\nfor n in (1, 2):\n    k[(x.numel(),)](x, x, x, n, 5, BLOCK=64)\n"
    );
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let runs = HostRun::all(&module, &source);
    let [run] = runs.as_slice() else { panic!("{} runs", runs.len()) };
    let [launch] = run.launches.as_slice() else { panic!("{:?}", run.launches) };
    assert!(launch.is_repeated);
    assert_eq!(launch.grid, Some(vec![HostNumber::Known(100)]));
    assert_eq!(show(run, launch.value(&module, &module.kernels[0], "a").unwrap(), launch), "fp32 [100] by [1]");
}

#[test]
fn descriptors_of_the_host_are_followed() {
    let text = format!(
        "{HEAD}from triton.tools.tensor_descriptor import TensorDescriptor\n\ndef run(n):\n    x = torch.empty(n, 32, dtype=torch.float16)\n    \
         a = TensorDescriptor(x, x.shape, x.stride(), [16, 32])\n    b = TensorDescriptor.from_tensor(x, (8, 8))\n    \
         c = TensorDescriptor(x, [n, 32], [64, 1], [16, 16])\n    k[(1,)](a, b, c, n, n, BLOCK=64)\n"
    );
    let module = Module::build(&Source::parse(text.as_str()));
    let run = HostRun::of(&module, &text, &module.hosts[0]);
    let shown = |descriptor: &HostDescriptor| {
        let strides: Vec<String> = descriptor.strides.iter().map(|(stride, _)| stride.to_string()).collect();
        let block: Vec<String> = descriptor.block.iter().flatten().map(ToString::to_string).collect();
        format!("{} by {}", block.join(" "), strides.join(" "))
    };
    let found: Vec<String> = run.descriptors.iter().map(shown).collect();
    assert_eq!(found, ["16 32 by 32 1", "8 8 by 32 1", "16 16 by 64 1"]);
    assert_eq!(run.launches[0].args[0], HostValue::Descriptor(0));
}

#[test]
fn sizes_are_unpacked_behind_a_star() {
    let found = passed_by(
        "def run(v):\n    x = torch.empty(2, 3, 5)\n    a, b, c, d = *x.shape, v.shape[-1]\n    k[(a,)](x, x, x, b, d, BLOCK=c)\n",
    );
    assert_eq!(found[3..], ["n: 3", "m: v.shape[-1]", "BLOCK: 5", "grid: 2"]);
}
