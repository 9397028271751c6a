use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::Source;

use super::*;
use crate::Selection;
use crate::check as check_file;

const HEAD: &str = "import triton\nimport triton.language as tl\n\n";

fn findings(text: &str, target: TritonTarget) -> Vec<Diagnostic> {
    let source = Source::parse(text);
    let module = Module::build(&source);
    let selection = Selection { select: vec!["H001".to_owned()], ignore: Vec::new() };
    check_file(&RuleContext::new(&source, &module, target), &selection)
}

fn known() -> TritonTarget {
    TritonTarget::of(Table::newest().version)
}

/// The marked texts and messages of a launch in a function, of a kernel with `decorators`.
fn launch(decorators: &str, params: &str, arguments: &str) -> Vec<(String, String)> {
    let text = format!(
        "{HEAD}{decorators}@triton.jit\ndef k({params}):\n    pass\n\ndef run(x, y, *args, **kwargs):\n    k[(1,)]({arguments})\n"
    );
    let found = findings(&text, known());
    found.into_iter().map(|found| (text[found.span.start..found.span.end].to_owned(), found.message)).collect()
}

fn marked(decorators: &str, params: &str, arguments: &str) -> Vec<String> {
    launch(decorators, params, arguments).into_iter().map(|(marked, _)| marked).collect()
}

const PARAMS: &str = "x, out, n, BLOCK: tl.constexpr";

#[test]
fn correct_launches_have_no_findings() {
    for arguments in [
        "x, y, 3, 64",
        "x, y, n=3, BLOCK=64",
        "BLOCK=64, n=3, out=y, x=x",
        "x, y, 3, BLOCK=64, num_warps=8, num_stages=2, maxnreg=128, launch_cooperative_grid=True, debug=True",
        "x, y, 3, BLOCK=64, waves_per_eu=2, matrix_instr_nonkdim=16, kpack=2, sanitize_overflow=False",
        "x, y, 3, BLOCK=64, num_consumer_groups=2", // 3.2 and 3.3
        "*args",
        "x, *args",
        "x, **kwargs",
        "x, y, 3, **{'BLOCK': 64}",
        "*args, BLOCK=64, **kwargs",
    ] {
        assert_eq!(launch("", PARAMS, arguments), [], "{arguments}");
    }
    assert_eq!(launch("", "x, n=1, BLOCK: tl.constexpr = 64", "x"), []);
}

#[test]
fn missing_arguments_are_named() {
    assert_eq!(
        launch("", PARAMS, "x, BLOCK=64"),
        [("k".to_owned(), "`k` is launched without its arguments `out` and `n`".to_owned())]
    );
    assert_eq!(
        launch("", PARAMS, "x, y, 3"),
        [("k".to_owned(), "`k` is launched without its argument `BLOCK`".to_owned())]
    );
}

#[test]
fn extra_and_duplicate_arguments_are_flagged() {
    assert_eq!(
        launch("", PARAMS, "x, y, 3, 64, 128, 256"),
        [("128".to_owned(), "`k` takes 4 arguments, but gets 6 by position".to_owned())]
    );
    assert_eq!(
        launch("", PARAMS, "x, y, 3, 64, n=4"),
        [("n".to_owned(), "`n` is given twice: by position and by keyword".to_owned())]
    );
    assert_eq!(marked("", PARAMS, "x, y, 3, 64, grid=(1,)"), ["grid"]);
    assert_eq!(marked("", PARAMS, "x, y, 3, 64, stream=0"), ["stream"]);
    // The contents of `*args` are unknown.
    assert_eq!(marked("", PARAMS, "*args, x, n=4"), [""; 0]);
    assert_eq!(marked("", PARAMS, "x, y, *args, out=4"), ["out"]);
}

#[test]
fn unknown_keywords_are_offered_the_nearest_name() {
    let text = format!("{HEAD}@triton.jit\ndef k({PARAMS}):\n    pass\n\ndef run(x):\n    k[(1,)](x, x, 3, ARGS)\n");
    for (written, mended) in [
        ("BLOK=64", Some("BLOCK=64")),
        ("block=64", Some("BLOCK=64")),
        ("BLOCK=64, num_warp=4", Some("BLOCK=64, num_warps=4")),
        ("BLOCK=64, num_wraps=4", Some("BLOCK=64, num_warps=4")),
        ("BLOCK=64, frobnicate=4", None),
        ("BLOCK=64, num_stage=4", Some("BLOCK=64, num_stages=4")),
    ] {
        let text = text.replace("ARGS", written);
        let found = findings(&text, known());
        assert_eq!(found.len(), 1, "{written}: {found:?}");
        let fixed = found[0].fix.as_ref().map(|fix| fix.apply(&text));
        assert_eq!(fixed, mended.map(|mended| text.replace(written, mended)), "{written}");
    }
    // Another back end may have this option.
    for (written, count) in [("BLOCK=64, frobnicate=4", 0), ("BLOCK=64, FROB=4", 1), ("block=64", 1)] {
        assert_eq!(findings(&text.replace("ARGS", written), TritonTarget::newest()).len(), count, "{written}");
    }
}

#[test]
fn arguments_from_autotuner_and_heuristics_are_respected() {
    let tune = |configs: &str| format!("@triton.autotune(configs={configs}, key=[])\n");
    let both = tune("[triton.Config({'BLOCK': 64}, num_warps=4), triton.Config({'BLOCK': 128})]");
    let one = tune("[triton.Config({'BLOCK': 64}), triton.Config({})]");
    let open = tune("CONFIGS");
    let pruned = one.replace("key=[]", "key=[], prune_configs_by={'early_config_prune': prune}");
    let heuristic = "@triton.heuristics({'BLOCK': lambda args: 64})\n";
    for (decorators, arguments, expected) in [
        (both.as_str(), "x, y, 3", vec![]),
        (&both, "x, y", vec!["k"]),
        (&both, "x, y, 3, BLOCK=64", vec!["BLOCK"]),
        (&both, "x, y, 3, 64", vec!["64"]),
        (&both, "x, y, 3, num_warps=4", vec!["num_warps"]),
        (&both, "x, y, 3, maxnreg=4", vec![]),
        (&tune("[triton.Config({'BLOCK': 64}, num_warps=None)]"), "x, y, 3, num_warps=4", vec![]),
        (&one, "x, y, 3", vec!["k"]),
        (&pruned, "x, y, 3", vec![]),
        (&open, "x", vec![]),
        (&open, "x, y, 3, BLOCK=64", vec![]),
        (&open, "x, y, 3, 64, 128", vec!["128"]),
        (heuristic, "x, y, 3", vec![]),
        (heuristic, "x, y, 3, BLOCK=64", vec![]), // overridden
        (heuristic, "x, y, 3, 64", vec!["64"]),
        ("@triton.heuristics(HEURISTICS)\n", "x", vec![]),
    ] {
        assert_eq!(marked(decorators, PARAMS, arguments), expected, "{decorators}{arguments}");
    }
    let related = launch(&one, PARAMS, "x, y, 3");
    assert_eq!(related[0].1, "`k` is launched without its argument `BLOCK`");
}

#[test]
fn launches_of_uncertain_kernels_are_not_checked() {
    let host = "def run(x):\n    k[(1,)](x)\n";
    let plain = "@triton.jit\ndef k(x, y):\n    pass\n";
    let found = |text: String| findings(&format!("{HEAD}{text}"), known()).len();
    assert_eq!(found(format!("{plain}{host}")), 1);
    for text in [
        format!("{plain}k = wrap(k)\n{host}"),
        format!("{plain}a, k = wrap(k)\n{host}"),
        format!("{plain}from fast import k\n{host}"),
        format!("import k\n{plain}{host}"),
        format!("try:\n    from fast import f as k\nexcept ImportError:\n    pass\n{plain}{host}"),
        format!("{plain}def swap():\n    global k\n    k = None\n{host}"),
        format!("{plain}{}", host.replace("(x):", "(x, k):")),
        format!("{plain}{}", host.replace("    k[", "    k = choose()\n    k[")),
        format!("{plain}{}", host.replace("    k[", "    for k in x:\n        k[")),
        format!("{plain}{}", host.replace("    k[", "    with open() as k:\n        k[")),
        format!("{plain}{}", host.replace("    k[", "    from fast import k\n    k[")),
        format!("{plain}def outer(k):\n    def run(x):\n        k[(1,)](x)\n"),
        format!("{plain}def run(x):\n    return [k[(1,)](x) for k in x]\n"),
        format!("{plain}run = lambda k: k[(1,)](1)\n"),
        format!("if NEW:\n    {}{host}", plain.replace('\n', "\n    ").trim_end_matches(' ')),
        format!("@wrap\n{plain}{host}"),
        format!("{}{host}", plain.replace("x, y", "x, *, y")),
        format!("{}{host}", plain.replace("x, y", "*, x, y")),
        format!("{}{host}", plain.replace("x, y", "x, *y")),
        format!("{plain}def run(x):\n    k[(1,)](x, y=)\n"),
    ] {
        assert_eq!(found(text.clone()), 0, "{text}");
    }
    // Nesting that exceeds the stack.
    let deep = format!("X = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000));
    assert_eq!(found(format!("{deep}{plain}{host}")), 1);
    // In other scopes the name may refer to something else.
    assert_eq!(found(format!("{plain}def other(k):\n    k = 1\n{host}class C:\n    k = 1\n")), 1);
}
