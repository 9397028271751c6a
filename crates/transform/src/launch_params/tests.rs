use super::*;
use std::path::Path;

use model::syntax::Source;
use rules::apply_edits;
use workload::{launch_of_candidate, numbers_of_comment, workloads_of_comments};

fn turned(text: &str, values: &[(&str, i64)]) -> (Vec<String>, String) {
    let module = Module::build(&Source::parse(text));
    let knobs = knobs(&module, text, &module.kernels[0], "run");
    let value =
        |knob: &Knob| values.iter().find(|(name, _)| *name == knob.name).map_or(knob.current, |(_, value)| *value);
    let setting = knobs.iter().map(value).collect();
    (
        knobs.iter().map(|knob| format!("{}={}", knob.name, knob.current)).collect(),
        apply_edits(text, &edits(&knobs, &setting)),
    )
}

const HEAD: &str = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n, B: tl.constexpr, H: tl.constexpr):\n    for i in range(n):\n        pass\n";

#[test]
fn num_stages_is_a_knob_only_if_the_kernel_may_loop() {
    let with = |body: &str| {
        let head = HEAD.replace("for i in range(n):\n        pass", body);
        let (knobs, _) = turned(&format!("{head}def run(x):\n    k[(1,)](x, 7, 64, H=80, num_stages=2)\n"), &[]);
        knobs.contains(&"num_stages=2".to_owned())
    };
    for body in ["while n > 0:\n        n -= 1", "helper(x)", "if n:\n        lib.f(x)", "for i in tl.range(n): x += 1"]
    {
        assert!(with(body), "{body}");
    }
    for body in [
        "tl.store(x, tl.sum(tl.load(x).to(tl.float32), 0))",
        "y = x.to(tl.float32)\n    y = y.to(tl.float16)",
        "n = max(n, 1)",
    ] {
        assert!(!with(body), "{body}");
    }
}

#[test]
fn literals_are_changed_in_place_and_missing_options_added() {
    let text = format!("{HEAD}def run(x):\n    k[(1,)](\n        x, 7, 64, H=80,\n    )\n");
    let (knobs, new) = turned(&text, &[("B", 128), ("num_warps", 8), ("num_stages", 2)]);
    assert_eq!(knobs, ["B=64", "num_warps=4", "num_stages=3"]);
    assert!(new.ends_with("        x, 7, 128, H=80, num_warps=8, num_stages=2,\n    )\n"), "{new}");
}

#[test]
fn an_option_that_is_a_kernel_parameter_is_changed_at_its_argument() {
    let head = HEAD.replace("H: tl.constexpr", "num_stages: tl.constexpr = 1");
    let of = |arguments: &str| {
        let text = format!("{head}def run(x):\n    k[(1,)]({arguments})\n");
        let (knobs, new) = turned(&text, &[("num_stages", 4)]);
        (knobs, new.lines().last().unwrap().to_owned())
    };
    let (knobs, new) = of("x, 7, 64, 2");
    assert_eq!(knobs, ["B=64", "num_warps=4", "num_stages=2"]);
    assert_eq!(new, "    k[(1,)](x, 7, 64, 4)");
    let (knobs, new) = of("x, 7, B=64, num_stages=2");
    assert_eq!((knobs.len(), new.as_str()), (3, "    k[(1,)](x, 7, B=64, num_stages=4)"));
    // The kernel has a parameter of that name, with its own default.
    assert_eq!(of("x, 7, 64").0, ["B=64", "num_warps=4"]);
    let config = head.replace("@triton.jit", "@triton.autotune([triton.Config({'B': 64})], key=['n'])\n@triton.jit");
    assert_eq!(turned(&format!("{config}def run(x):\n    k[(1,)](x, 7)\n"), &[]).0, ["B=64", "num_warps=4"]);
}

#[test]
fn numbers_in_a_workload_comment_are_changed_there() {
    let comment = "# warpsmith: workload entry=k[1] x=f16[8] n=8 B=64 H=80 num_warps=2";
    let text = format!("{HEAD}{comment}\ndef run(x):\n    k[(1,)](x, 7, 32, 80)\n");
    let module = Module::build(&Source::parse(text.as_str()));
    let workload = workloads_of_comments(Path::new("/f.py"), &text).unwrap().remove(0);
    let knobs = knobs_of_comment(&module.kernels[0], &numbers_of_comment(&text, &workload).unwrap());
    let shown: Vec<String> = knobs.iter().map(|knob| format!("{}={}", knob.name, knob.current)).collect();
    assert_eq!(shown, ["B=64", "num_warps=2", "num_stages=3"]);
    let new = apply_edits(&text, &edits(&knobs, &vec![128, 8, 1]));
    assert_eq!(new, text.replace("B=64", "B=128").replace("num_warps=2", "num_warps=8 num_stages=1"));
    // A candidate is launched with the changed numbers.
    let own = launch_of_candidate(&workload, &text, &new);
    assert_eq!(own.kwargs.last(), Some(&("num_stages".to_owned(), protocol::ArgumentValue::Int(1))));
}

#[test]
fn names_are_followed_to_their_only_assignment() {
    let text = format!("{HEAD}B = 32\ndef run(x, H):\n    W = 2\n    k[(1,)](x, 7, B, H, num_warps=W)\n");
    let (knobs, new) = turned(&text, &[("B", 64), ("num_warps", 4)]);
    assert_eq!(knobs, ["B=32", "num_warps=2", "num_stages=3"]);
    assert!(new.contains("\nB = 64\n") && new.contains("W = 4\n"), "{new}");
}

#[test]
fn numbers_are_found_in_bounds_defaults_and_tuples() {
    let text = format!(
        "{}MOST = 512\ndef run(x, D=128):\n    C, B = 256, min(MOST, 1024)\n    k[(1,)](x, 7, C, D)\n    B = f(x)\n",
        HEAD.replace("H: tl.constexpr", "H: tl.constexpr, F: tl.constexpr = 16")
    );
    let (knobs, new) = turned(&text, &[("B", 64), ("H", 32), ("F", 8)]);
    assert_eq!(knobs, ["B=256", "H=128", "F=16", "num_warps=4", "num_stages=3"]);
    for words in ["def run(x, D=32)", "C, B = 64, min(", "F: tl.constexpr = 8"] {
        assert!(new.contains(words), "{words}: {new}");
    }
    let bounded = format!("{HEAD}def run(x):\n    B = min(1024, x.shape[0])\n    k[(1,)](x, 7, B, 80)\n");
    let (knobs, new) = turned(&bounded, &[("B", 512)]);
    assert!(knobs[0] == "B=1024" && new.contains("min(512, x.shape[0])"), "{new}");
}

#[test]
fn defaults_and_options_after_unpacked_strides_are_knobs() {
    let kernel = HEAD.replace("n, B: tl.constexpr, H: tl.constexpr", "n, s, t, B: tl.constexpr = 64");
    let text = format!("{kernel}def run(x):\n    k[(1,)](x, 7, *x.stride())\n");
    let (knobs, new) = turned(&text, &[("B", 128), ("num_warps", 8)]);
    assert_eq!(knobs, ["B=64", "num_warps=4", "num_stages=3"]);
    assert!(new.contains("B: tl.constexpr = 128") && new.contains("(x, 7, *x.stride(), num_warps=8)"), "{new}");
    let (knobs, _) = turned(&text.replace("*x.stride()", "**options(x)"), &[]);
    assert!(knobs.is_empty(), "{knobs:?}");
    let (knobs, _) = turned(&text.replace("n, s, t, B", "B"), &[]);
    assert_eq!(knobs, ["num_warps=4", "num_stages=3"], "a default that is certainly not used");
}

#[test]
fn arguments_after_unpacked_strides_are_matched_from_the_end() {
    let kernel = HEAD.replace("n, B: tl.constexpr, H: tl.constexpr", "n, s, t, B: tl.constexpr, H: tl.constexpr");
    let text = format!("{kernel}def run(x):\n    k[(1,)](x, 7, *x.stride(), 64, 32)\n");
    let (knobs, new) = turned(&text, &[("B", 128), ("H", 16)]);
    assert_eq!(knobs, ["B=64", "H=32", "num_warps=4", "num_stages=3"]);
    assert!(new.ends_with("k[(1,)](x, 7, *x.stride(), 128, 16)\n"), "{new}");
    // The number of unpacked arguments is unknown where some parameters have defaults.
    let (_, new) = turned(&text.replace("H: tl.constexpr", "H: tl.constexpr = 8"), &[("B", 128)]);
    assert!(new.ends_with(", 64, 32)\n"), "{new}");
}

#[test]
fn a_tile_size_in_the_grid_changes_with_the_knob() {
    let kernel = HEAD.replace("    pass", "    i = tl.program_id(0) * B");
    let text = format!("{kernel}def run(x):\n    k[(x.n + 63) // 64, 64](x, 7, 64, H=80)\n");
    let (_, new) = turned(&text, &[("B", 128)]);
    assert!(new.ends_with("    k[(x.n + 127) // 128, 64](x, 7, 128, H=80)\n"), "{new}");
    let default = kernel
        .replace("B: tl.constexpr,", "H: tl.constexpr = 80,")
        .replace("H: tl.constexpr)", "B: tl.constexpr = 64)");
    let text = format!("{default}def run(x):\n    k[lambda meta: (triton.cdiv(x.n, 64),)](x, 7)\n");
    let (_, new) = turned(&text, &[("B", 32)]);
    assert!(new.contains("B: tl.constexpr = 32)") && new.contains("(triton.cdiv(x.n, 32),)](x, 7)"), "{new}");
}

#[test]
fn computed_or_twice_bound_numbers_are_no_knobs() {
    let text = format!(
        "{HEAD}def run(x):\n    B = 32\n    B = 64\n    k[(1,)](x, 7, B, f(x), num_warps=g(x), num_stages=2)\n"
    );
    let (knobs, new) = turned(&text, &[("num_warps", 8)]);
    assert_eq!(knobs, ["num_warps=4", "num_stages=2"]);
    assert!(new.contains("num_warps=8, num_stages=2"), "any number of warps will do: {new}");
    let tuned = HEAD.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit");
    assert!(turned(&format!("{tuned}def run(x):\n    k[(1,)](x, 7, 64, 4)\n"), &[]).0.is_empty());
}

#[test]
fn a_named_bound_of_a_tile_size_is_a_knob() {
    let text = format!(
        "MOST = 65536 // 2\n{HEAD}def run(x, n):\n    size = min(MOST, triton.next_power_of_2(n))\n    k[(1,)](x, n, size, H=80)\n"
    );
    let (knobs, new) = turned(&text, &[("B", 16384)]);
    assert_eq!(knobs, ["B=32768", "num_warps=4", "num_stages=3"]);
    assert!(new.starts_with("MOST = 16384\n") && new.contains("min(MOST, "), "{new}");
}

#[test]
fn options_in_an_unpacked_dictionary_change_in_place() {
    let text =
        format!("{HEAD}def run(x):\n    options = dict(B=64, num_warps=8)\n    k[(1,)](x, 7, H=80, **options)\n");
    let (knobs, new) = turned(&text, &[("B", 128), ("num_warps", 2), ("num_stages", 2)]);
    assert_eq!(knobs, ["B=64", "num_warps=8", "num_stages=3"]);
    assert!(
        new.ends_with("    options = dict(B=128, num_warps=2)\n    k[(1,)](x, 7, H=80, **options, num_stages=2)\n"),
        "{new}"
    );
    // The further contents of the dictionary are unknown.
    let (knobs, _) = turned(&text.replace("dict(B=64, num_warps=8)", "other()"), &[]);
    assert!(knobs.is_empty(), "{knobs:?}");
}
