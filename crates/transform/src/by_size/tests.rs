use protocol::{ArgumentValue, LaunchRecord, TensorSpec, Workload};

use super::*;

const TEXT: &str = "import torch
import triton
import triton.language as tl

@triton.jit
def k(x, out, stride, n_cols, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n_cols), mask=at < n_cols)

def run(x):
    x = x.contiguous()
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    B = 64
    # one row for each program
    k[(n_rows,)](x, out, x.stride(0), n_cols, B)
    return out
";

fn call(shape: [i64; 2]) -> Workload {
    let spec = TensorSpec { shape: shape.to_vec(), ..TensorSpec::default() };
    Workload { entry: "run".to_owned(), args: vec![ArgumentValue::Tensor(spec)], count: 1, ..Workload::default() }
}

fn calls() -> Vec<Workload> {
    vec![call([8, 100]), call([4096, 100]), call([8, 5000])]
}

fn all_sizes(text: &str, calls: &[Workload]) -> Vec<Size> {
    sizes(&Candidate::original(text), &["k".to_owned()], calls)
}

fn shown(text: &str, calls: &[Workload]) -> Vec<(String, Vec<i64>)> {
    all_sizes(text, calls).into_iter().map(|size| (size.text, size.values)).collect()
}

/// The two versions merged, by `n_cols` unless another size is named.
fn both(small: &str, large: &str, by: &str, keeps_small: bool) -> [Option<String>; 2] {
    let sizes = all_sizes(small, &calls());
    let size = sizes.iter().find(|size| size.text == by).unwrap();
    let (small, large) = (Candidate::original(small), Candidate::original(large));
    let two = Two { small: &small, large: &large, size, at: 1024, keeps_small };
    [two.in_numbers(TEXT, &["k".to_owned()], &calls()[0]), two.in_versions()]
}

#[test]
fn sizes_come_from_launch_arguments_and_tensor_shapes() {
    let known = |text: &str| (text.to_owned(), vec![100, 100, 5000]);
    let rows = ("x.shape[0]".to_owned(), vec![8, 4096, 8]);
    assert_eq!(shown(TEXT, &calls()), [known("n_cols"), rows.clone(), known("x.shape[1]")]);
    // A tensor that changes its shape before the launch has another size there.
    let viewed = TEXT.replace("x = x.contiguous()", "x = x.view(-1, x.shape[-1])");
    assert_eq!(shown(&viewed, &calls()), []);
    let mut recorded = calls();
    for call in &mut recorded {
        let ArgumentValue::Tensor(spec) = &call.args[0] else { panic!() };
        let arguments = vec![("n_cols".to_owned(), ArgumentValue::Int(spec.shape[1]))];
        call.launches = vec![LaunchRecord { kernel: "k".to_owned(), arguments, ..LaunchRecord::default() }];
    }
    assert_eq!(shown(&viewed, &recorded), [known("n_cols")]);
    let passed = TEXT.replace("n_cols, B)", "x.shape[1], B)").replace("stride(0)", "size(0) * 2");
    let doubled = ("x.size(0) * 2".to_owned(), vec![16, 8192, 16]);
    assert_eq!(shown(&passed, &calls()), [doubled, known("x.shape[1]"), rows]);
    assert_eq!(shown(TEXT, &[call([8, 9]), call([8, 9])]), []);
}

#[test]
fn differing_numbers_become_choices_in_place() {
    let [small, large] = ["B = 128", "B = 1024"].map(|number| TEXT.replace("B = 64", number));
    let chosen = TEXT.replace("B = 64", "B = 128 if n_cols <= 1024 else 1024");
    assert_eq!(both(&small, &large, "n_cols", true)[0].as_deref(), Some(chosen.as_str()));
    let by_rows = chosen.replace("n_cols <=", "x.shape[0] <=");
    assert_eq!(both(&small, &large, "x.shape[0]", false)[0].as_deref(), Some(by_rows.as_str()));
    // An option that one version leaves out has its default there, also where the other version computes it.
    let launch = |options: &str| TEXT.replace("n_cols, B)", &format!("n_cols, B{options})"));
    for keeps_small in [true, false] {
        let [numbers, _] = both(&launch(", num_warps=8"), TEXT, "n_cols", keeps_small);
        assert_eq!(numbers.unwrap(), launch(", num_warps=8 if n_cols <= 1024 else 4"));
        let [numbers, _] = both(&launch(", num_warps=f(x)"), &launch(", num_warps=2"), "n_cols", keeps_small);
        assert_eq!(numbers.unwrap(), launch(", num_warps=f(x) if n_cols <= 1024 else 2"));
    }
    // Inside of other expressions the choice is in parentheses.
    let with = |value: &str| TEXT.replace("B = 64", &format!("B, other = {value}, 7"));
    assert_eq!(
        both(&with("64"), &with("32"), "n_cols", true)[0].as_deref(),
        Some(with("(64 if n_cols <= 1024 else 32)").as_str())
    );
    let bound = |value: &str| TEXT.replace("B = 64", &format!("B = min({value}, x.shape[1])"));
    assert_eq!(
        both(&bound("64"), &bound("32"), "n_cols", true)[0].as_deref(),
        Some(bound("(64 if n_cols <= 1024 else 32)").as_str())
    );
}

#[test]
fn no_choice_is_made_where_the_size_is_unknown() {
    // The number is assigned before the size is, is a default, or is a constant of the file.
    let above = TEXT.replace("    B = 64\n", "").replace("    x = x.cont", "    B = 64\n    x = x.cont");
    let default = TEXT.replace("    B = 64\n", "").replace("def run(x)", "def run(x, B=64)");
    let global = TEXT.replace("    B = 64\n", "").replace("@triton", "B = 64\n@triton");
    for text in [above, default, global] {
        assert_eq!(both(&text, &text.replace("64", "128"), "n_cols", true), [None, None], "{text}");
    }
    // The versions are equal, or differ in something else.
    assert_eq!(both(TEXT, TEXT, "n_cols", true), [None, None]);
    assert_eq!(both(TEXT, &TEXT.replace("n_rows,)](", "n_rows, 1)]("), "n_cols", true)[0], None);
}

/// A version with several rows for each program.
fn of_rows() -> String {
    TEXT.replace("B: tl.constexpr):", "B: tl.constexpr, ROWS: tl.constexpr):")
        .replace("at = tl.arange(0, B)", "at = tl.arange(0, ROWS * B)")
        .replace("k[(n_rows,)](x, out, x.stride(0), n_cols, B)", "k[lambda meta: (triton.cdiv(n_rows, meta[\"ROWS\"]),)](\n        x, out, x.stride(0), n_cols, B, ROWS=2\n    )")
}

#[test]
fn both_kernels_are_kept_and_the_host_decides() {
    let launch = "    # one row for each program\n    k[(n_rows,)](x, out, x.stride(0), n_cols, B)\n";
    let kernel = &TEXT[TEXT.find("@triton").unwrap()..TEXT.find("\n\ndef run").unwrap()];
    let rows = of_rows();
    let kernel_of_rows = &rows[rows.find("@triton").unwrap()..rows.find("\n\ndef run").unwrap()];
    let branches = |small: &str, large: &str| {
        format!(
            "    if n_cols <= 1024:
        # one row for each program
        {small}[lambda meta: (triton.cdiv(n_rows, meta[\"ROWS\"]),)](
            x, out, x.stride(0), n_cols, B, ROWS=2
        )
    else:
        # one row for each program
        {large}[(n_rows,)](x, out, x.stride(0), n_cols, B)
"
        )
    };
    let beside = format!("{kernel}\n\n\n{}", kernel_of_rows.replace("def k(", "def k_small("));
    let expected = TEXT.replace(kernel, &beside).replace(launch, &branches("k_small", "k"));
    assert_eq!(both(&rows, TEXT, "n_cols", false), [None, Some(expected)]);
    let beside = format!("{kernel_of_rows}\n\n\n{}", kernel.replace("def k(", "def k_large("));
    let expected = TEXT.replace(kernel, &beside).replace(launch, &branches("k", "k_large"));
    assert_eq!(both(&rows, TEXT, "n_cols", true)[1].as_deref(), Some(expected.as_str()));
}

#[test]
fn imports_constants_and_helpers_of_one_version_are_added() {
    let more = of_rows()
        .replace("import torch\n", "import torch\nfrom math import ceil\n")
        .replace(
            "@triton.jit\ndef k",
            "LOG2E = 1.44\n\n@triton.jit\ndef twice(x):\n    return 2 * x\n\n@triton.jit\ndef k",
        )
        .replace("tl.load(x + at,", "twice(LOG2E) * tl.load(x + at,");
    let text = both(TEXT, &more, "n_cols", true)[1].clone().unwrap();
    assert!(text.contains("import triton.language as tl\nfrom math import ceil\nLOG2E = 1.44\n"), "{text}");
    assert!(text.contains("def k_large(") && text.contains("twice(LOG2E)") && text.matches("def twice").count() == 1);
    // A kernel that calls another helper is another kernel, even if its text is the same.
    let calling = more.replace("return 2 * x", "return 3 * x");
    let text = both(&more, &calling, "n_cols", true)[1].clone().unwrap();
    assert!(text.contains("return 3 * x") && text.contains("twice_large(LOG2E) * tl.load"), "{text}");
    assert!(text.contains("        k_large[lambda meta"), "{text}");
}

#[test]
fn versions_with_unsupported_differences_are_not_merged() {
    let rows = of_rows();
    let refused = |small: &str, large: &str| both(small, large, "n_cols", true)[1].is_none();
    assert!(!refused(&rows, TEXT));
    let with = |from: &str, to: &str| [rows.replace(from, to), TEXT.replace(from, to)];
    // The size becomes known only after the first difference.
    let [small, large] = with("    x = x.contiguous()\n", "    x = x.contiguous()\n    k[(1,)](x, x, 1, 1, B=1)\n");
    assert!(refused(&small, &large));
    // A docstring of several lines, an autotuner, two functions that launch.
    let [small, large] = with("    # one row", "    '''\nOne row.'''\n    # one row");
    assert!(!refused(&small, &large), "it is the same in both");
    let [small, large] = with("n_cols, B", "n_cols, B * len('''\n''')");
    assert!(refused(&small, &large));
    let [small, large] = with("@triton.jit", "@triton.autotune(configs=[triton.Config({})], key=[])\n@triton.jit");
    assert!(refused(&small, &large));
    let [small, large] = with("def run(x)", "def other(x):\n    k[(1,)](x, x, 1, 1, 1, 1)\n\ndef run(x)");
    assert!(refused(&small, &large));
    // Different constants of one name, another function head, another difference.
    let [small, large] = with("@triton.jit", "C = 1\n@triton.jit");
    assert!(refused(&small, &large.replace("C = 1", "C = 2")));
    assert!(refused(&small, &large.replace("def run(x):", "def run(x, y=1):")));
    assert!(refused(&small, &format!("{large}\nprint(1)\n")));
    assert!(refused(&small, &format!("{large}\ndef (:\n")));
}

#[test]
fn an_autotuner_gets_the_configurations_of_both() {
    let configs = |configs: &str| {
        let tuned = format!(
            "@triton.autotune(\n    configs=[\n        {configs},\n    ],\n    key=[\"n_cols\"],\n)\n@triton.jit"
        );
        TEXT.replace("@triton.jit", &tuned).replace("    B = 64\n", "").replace(", n_cols, B)", ", n_cols)")
    };
    let config = |number: i64| format!("triton.Config({{\"B\": {number}}})");
    let lines = |numbers: &[i64]| {
        configs(&numbers.iter().map(|&number| config(number)).collect::<Vec<_>>().join(",\n        "))
    };
    let original = lines(&[64, 128]);
    let chosen = |original: &str, small: &str, large: &str, by: &str| {
        let sizes = all_sizes(original, &calls());
        let size = sizes.iter().find(|size| size.text == by).unwrap();
        let [original, small, large] = [original, small, large].map(Candidate::original);
        Two { small: &small, large: &large, size, at: 1024, keeps_small: true }.in_configurations(&original)
    };
    let both = chosen(&original, &lines(&[32]), &lines(&[512]), "n_cols");
    assert_eq!(both, Some(lines(&[32, 512, 64, 128])));
    // One of the versions is the original, or has one of its configurations.
    assert_eq!(chosen(&original, &original, &lines(&[512]), "n_cols"), Some(lines(&[64, 128, 512])));
    assert_eq!(chosen(&original, &lines(&[128]), &lines(&[512]), "n_cols"), Some(lines(&[128, 512, 64])));
    // The key does not distinguish the calls, the versions differ in something else, or there is no choice.
    assert_eq!(chosen(&original, &lines(&[32]), &lines(&[512]), "x.shape[0]"), None);
    assert_eq!(chosen(&original, &lines(&[32]), &lines(&[512]).replace("mask=at", "mask=1+at"), "n_cols"), None);
    assert_eq!(chosen(&lines(&[64]), &lines(&[32]), &lines(&[512]), "n_cols"), None);
    assert_eq!(chosen(TEXT, TEXT, &TEXT.replace("64", "128"), "n_cols"), None);
}
