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
fn stages_are_turned_where_something_may_be_done_in_rounds() {
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
fn literals_and_missing_options_are_turned_in_place() {
    let text = format!("{HEAD}def run(x):\n    k[(1,)](\n        x, 7, 64, H=80,\n    )\n");
    let (knobs, new) = turned(&text, &[("B", 128), ("num_warps", 8), ("num_stages", 2)]);
    assert_eq!(knobs, ["B=64", "num_warps=4", "num_stages=3"]);
    assert!(new.ends_with("        x, 7, 128, H=80, num_warps=8, num_stages=2,\n    )\n"), "{new}");
}

#[test]
fn an_option_that_the_kernel_takes_itself_stands_where_it_is_passed() {
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
    // Its default is the kernel's own.
    assert_eq!(of("x, 7, 64").0, ["B=64", "num_warps=4"]);
    let config = head.replace("@triton.jit", "@triton.autotune([triton.Config({'B': 64})], key=['n'])\n@triton.jit");
    assert_eq!(turned(&format!("{config}def run(x):\n    k[(1,)](x, 7)\n"), &[]).0, ["B=64", "num_warps=4"]);
}

#[test]
fn numbers_of_a_comment_are_turned_there() {
    let comment = "# warpsmith: workload entry=k[1] x=f16[8] n=8 B=64 H=80 num_warps=2";
    let text = format!("{HEAD}{comment}\ndef run(x):\n    k[(1,)](x, 7, 32, 80)\n");
    let module = Module::build(&Source::parse(text.as_str()));
    let workload = workloads_of_comments(Path::new("/f.py"), &text).unwrap().remove(0);
    let knobs = knobs_of_comment(&module.kernels[0], &numbers_of_comment(&text, &workload).unwrap());
    let shown: Vec<String> = knobs.iter().map(|knob| format!("{}={}", knob.name, knob.current)).collect();
    assert_eq!(shown, ["B=64", "num_warps=2", "num_stages=3"]);
    let new = apply_edits(&text, &edits(&knobs, &vec![128, 8, 1]));
    assert_eq!(new, text.replace("B=64", "B=128").replace("num_warps=2", "num_warps=8 num_stages=1"));
    // What is turned is what a candidate is launched with.
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
fn numbers_are_found_wherever_they_stand() {
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
fn strides_that_are_unpacked_hide_no_options_and_no_defaults_behind_them() {
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
fn numbers_behind_strides_that_are_unpacked_are_told_from_the_end() {
    let kernel = HEAD.replace("n, B: tl.constexpr, H: tl.constexpr", "n, s, t, B: tl.constexpr, H: tl.constexpr");
    let text = format!("{kernel}def run(x):\n    k[(1,)](x, 7, *x.stride(), 64, 32)\n");
    let (knobs, new) = turned(&text, &[("B", 128), ("H", 16)]);
    assert_eq!(knobs, ["B=64", "H=32", "num_warps=4", "num_stages=3"]);
    assert!(new.ends_with("k[(1,)](x, 7, *x.stride(), 128, 16)\n"), "{new}");
    // Nobody knows how many parts there are where not all parameters must be given.
    let (_, new) = turned(&text.replace("H: tl.constexpr", "H: tl.constexpr = 8"), &[("B", 128)]);
    assert!(new.ends_with(", 64, 32)\n"), "{new}");
}

#[test]
fn a_grid_that_has_the_number_is_turned_with_it() {
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
fn what_is_computed_or_bound_twice_is_left_alone() {
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
fn a_bound_may_have_a_name_and_be_computed_of_numbers() {
    let text = format!(
        "MOST = 65536 // 2\n{HEAD}def run(x, n):\n    size = min(MOST, triton.next_power_of_2(n))\n    k[(1,)](x, n, size, H=80)\n"
    );
    let (knobs, new) = turned(&text, &[("B", 16384)]);
    assert_eq!(knobs, ["B=32768", "num_warps=4", "num_stages=3"]);
    assert!(new.starts_with("MOST = 16384\n") && new.contains("min(MOST, "), "{new}");
}

#[test]
fn options_in_a_dictionary_are_turned_there() {
    let text =
        format!("{HEAD}def run(x):\n    options = dict(B=64, num_warps=8)\n    k[(1,)](x, 7, H=80, **options)\n");
    let (knobs, new) = turned(&text, &[("B", 128), ("num_warps", 2), ("num_stages", 2)]);
    assert_eq!(knobs, ["B=64", "num_warps=8", "num_stages=3"]);
    assert!(
        new.ends_with("    options = dict(B=128, num_warps=2)\n    k[(1,)](x, 7, H=80, **options, num_stages=2)\n"),
        "{new}"
    );
    // What else is in it nobody knows.
    let (knobs, _) = turned(&text.replace("dict(B=64, num_warps=8)", "other()"), &[]);
    assert!(knobs.is_empty(), "{knobs:?}");
}
