//! Tests of patterns, predicates and learned rules.

use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::Source;

use super::*;
use crate::check_with;

const AXIS: &str = "(call function: (_) @f arguments: (argument_list (keyword_argument name: (identifier) @here))\n  \
                    (#api? @f \"tl.load\" \"tl.store\") (#eq? @here \"axis\"))\n";

/// A promoted rule.
pub(super) fn rule(code: &str) -> LearnedRule {
    LearnedRule {
        code: code.to_owned(),
        name: "no-axis".to_owned(),
        sentence: "You cannot pass `{here}` to `{f}`.".to_owned(),
        state: RuleState::Promoted,
        origin: RuleOrigin::Synthesised(1),
        covered_by: Vec::new(),
        failures: 3,
        met: 7,
        first_seen: "2026-11-24".to_owned(),
        last_seen: "2026-11-25".to_owned(),
        error: TritonError {
            kind: "TypeError".to_owned(),
            message: "load() got an unexpected keyword argument '{here}'".to_owned(),
        },
        triton: Releases {
            since: Some("3.1.0".parse().unwrap()),
            until: None,
            tried: model::api::Table::versions().to_vec(),
        },
        pattern: AXIS.to_owned(),
        bad: "@triton.jit\ndef k(x):\n    tl.load(x, axis=0)\n".to_owned(),
        good: "@triton.jit\ndef k(x):\n    tl.load(x)\n".to_owned(),
    }
}

fn kernel(body: &str) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "import math\nimport torch\nimport triton\nimport triton.language as tl\n\nN = 4\n\ndef plain():\n    pass\n\n# warpsmith: signature \
         x=*fp16 n=i32 B=64\n@triton.jit\ndef k(x, n, B: tl.constexpr, F: tl.constexpr, w):\n{body}"
    )
}

fn target() -> TritonTarget {
    TritonTarget::of("3.6.0".parse().unwrap())
}

/// The parts of a kernel's body that a pattern flags.
fn flagged(pattern: &str, body: &str) -> Vec<String> {
    let text = kernel(body);
    let source = Source::parse(text.as_str());
    let module = Module::build(&source);
    let context = RuleContext::new(&source, &module, target());
    let spans = Pattern::compile(pattern).unwrap().matches(&context);
    spans.into_iter().map(|span| text[span.start..span.end].to_owned()).collect()
}

fn codes(memory: &LearnedRules, text: &str, target: TritonTarget) -> Vec<String> {
    let source = Source::parse(text);
    let module = Module::build(&source);
    let context = RuleContext::new(&source, &module, target);
    let selection = Selection { select: vec!["S".to_owned()], ignore: Vec::new() };
    let found = check_with(&context, &selection, memory);
    found.into_iter().map(|found| format!("{} {}", found.code, found.message)).collect()
}

#[test]
fn shipped_rules_match_their_bad_and_not_their_good_example() {
    let rules: Vec<LearnedRule> = LearnedRules::shipped().rules().cloned().collect();
    let written = write(&rules, Patterns::Beside);
    assert_eq!(written, SHIPPED, "not in the form that `warpsmith memory export` writes");
    for rule in &rules {
        assert!(!rule.is_own(), "{}: codes from S{FIRST_OWN} are the user's", rule.code);
        check(rule).unwrap();
        if rule.pattern.is_empty() || rule.state != RuleState::Promoted {
            continue;
        }
        let newest = TritonTarget::of(rule.triton.until.or_else(|| rule.triton.tried.iter().max().copied()).unwrap());
        let count = |text: &str| {
            let source = Source::parse(text);
            let module = Module::build(&source);
            let context = RuleContext::new(&source, &module, newest);
            Pattern::compile(&rule.pattern).unwrap().matches(&context).len()
        };
        assert_ne!(count(&rule.bad), 0, "{}: its pattern does not match its bad example", rule.code);
        assert_eq!(count(&rule.good), 0, "{}: its pattern matches its good example", rule.code);
    }
    let names: Vec<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    let stray = SHIPPED_PATTERNS.iter().find(|(name, _)| !names.contains(name));
    assert!(stray.is_none(), "queries/learned/{}.scm belongs to no rule", stray.unwrap().0);
}

#[test]
fn a_finding_has_the_sentence_and_the_error() {
    let memory = LearnedRules::new([rule("S002")]);
    let text = kernel("y = tl.load(x, axis=0)\nz = tl.sum(x, axis=0)");
    assert_eq!(
        codes(&memory, &text, target()),
        [
            "S002 You cannot pass `axis` to `tl.load`. Triton refuses it with TypeError: load() got an unexpected keyword argument 'axis'"
        ]
    );
    // The function is recognized under another name.
    let bare = text.replace("import math", "from triton.language import load as l").replace("tl.load", "l");
    assert_eq!(codes(&memory, &bare, target()).len(), 1);
    let renamed = text.replace("language as tl", "language as t").replace("tl.", "t.");
    assert_eq!(codes(&memory, &renamed, target()).len(), 1);
    assert!(codes(&memory, &text.replace("import triton.language as tl", "from mine import tl"), target()).is_empty());
    assert!(codes(&memory, &text.replace("axis=0)", "axis=0)  # warpsmith: ignore[S002]"), target()).is_empty());
    assert!(codes(&memory, &text.replace("axis=0)", "axis=0)  # warpsmith: ignore[no-axis]"), target()).is_empty());
    assert!(codes(&memory.hiding(["S002".to_owned()]), &text, target()).is_empty());
}

#[test]
fn compiled_patterns_are_reused_only_for_equal_rules() {
    let memory = LearnedRules::new([rule("S002")]);
    memory.prepare();
    let again = LearnedRules::new([rule("S002")]).reusing(&memory);
    assert!(again.shown.get().is_some());
    let demoted = memory.demoting("S002").reusing(&memory);
    assert!(demoted.shown.get().is_none());
    let text = kernel("y = tl.load(x, axis=0)");
    assert_eq!(codes(&again, &text, target()).len(), 1);
    assert_eq!(codes(&demoted, &text, target()), [""; 0]);
    assert_eq!(codes(&again.muting("S002"), &text, target()), [""; 0]);
}

#[test]
fn rules_are_shown_where_they_were_proven() {
    let text = kernel("y = tl.load(x, axis=0)");
    let shown = |change: &dyn Fn(&mut LearnedRule), target: TritonTarget| {
        let mut rule = rule("S002");
        change(&mut rule);
        !codes(&LearnedRules::new([rule]), &text, target).is_empty()
    };
    let version = |text: &str| Some(text.parse().unwrap());
    assert!(shown(&|_| {}, target()));
    assert!(shown(&|_| {}, TritonTarget::newest()), "every release refuses it");
    assert!(!shown(&|_| {}, TritonTarget::of("3.10.0".parse().unwrap())), "nobody has tried it there");
    assert!(!shown(&|rule| rule.triton.since = version("3.7.0"), target()));
    assert!(!shown(&|rule| rule.triton.until = version("3.5.1"), target()));
    assert!(shown(&|rule| rule.triton.until = version("3.6.1"), target()), "patches of a release are one");
    assert!(
        !shown(&|rule| rule.triton.until = version("3.6.1"), TritonTarget::newest()),
        "not every release refuses it"
    );
    assert!(!shown(&|rule| rule.state = RuleState::Candidate, target()));
    assert!(!shown(&|rule| rule.state = RuleState::Demoted, target()));
    assert!(!shown(&|rule| rule.covered_by = vec!["L009".to_owned()], target()));
}

#[test]
fn a_combined_query_finds_the_same_as_single_patterns() {
    let patterns = [
        AXIS.to_owned(),
        "(call function: (attribute) @here (#unknown-member? @here))".to_owned(),
        "(binary_operator left: (_) @a right: (_) @b (#shapes-differ? @a @b)) @here".to_owned(),
        "(break_statement) @here\n(continue_statement) @here".to_owned(),
        "(call arguments: (argument_list . (_) @here)) (assignment left: (identifier) @here)".to_owned(),
        "(identifier) @here".to_owned(),
        "(for_statement body: (block (_)* @here))".to_owned(),
    ];
    let bodies = [
        "y = tl.load(x, axis=0)\nfor i in range(n):\n    y += tl.zap(x)\n    z = tl.arange(0, 4) + tl.arange(0, 8)\n    break",
        "while n:\n    continue\nreturn x",
        "f(g(h(x, axis=2), tl.store(x, n, axis=1)))",
    ];
    let texts: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let together = PatternSet::compile(&texts).unwrap();
    let mut count = 0;
    for body in bodies {
        let text = kernel(body);
        let source = Source::parse(text.as_str());
        let module = Module::build(&source);
        let context = RuleContext::new(&source, &module, target());
        let found = together.run(&context, 0);
        for (at, pattern) in patterns.iter().enumerate() {
            let alone = PatternSet::compile(&[pattern]).unwrap().run(&context, 0);
            let of_this: Vec<Match> =
                found.iter().filter(|(owner, _)| *owner == at).map(|(_, it)| it.clone()).collect();
            assert_eq!(alone.into_iter().map(|(_, it)| it).collect::<Vec<_>>(), of_this, "{pattern} in {body}");
            count += of_this.len();
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn code_that_may_not_be_compiled_is_not_flagged() {
    let call = "tl.load(x, axis=0)";
    for (shape, is_said) in [
        ("CALL", true),
        ("if n > 3:\n    CALL", true),
        ("if n > 3:\n    pass\nelse:\n    CALL", true),
        ("if F:\n    CALL", false),
        ("if F:\n    pass\nelif n > 3:\n    CALL", false),
        ("if F:\n    pass\nelse:\n    CALL", false),
        ("if B > 3:\n    CALL", true),
        ("if B > 100:\n    CALL", false),
        ("if B > 100:\n    pass\nelse:\n    CALL", true),
        ("if B == 64:\n    pass\nelse:\n    CALL", false),
        ("if B == 64:\n    return\nCALL", false),
        ("if F:\n    return\nCALL", false),
        ("if n > 3:\n    return\nCALL", true),
        ("if B > 100:\n    return\nCALL", true),
        ("if w:\n    CALL", false),
        ("for i in range(n):\n    CALL", true),
        ("for i in range(0):\n    CALL", true),
        ("for i in tl.static_range(F):\n    CALL", false),
        ("for i in tl.static_range(4):\n    CALL", true),
        ("for i in tl.static_range(0):\n    CALL", false),
        ("y = CALL if F else n", false),
        ("y = CALL if n > 3 else n", true),
        ("y = F and CALL", false),
        ("return\nCALL", false),
        ("def f():\n    CALL", false),
        ("y = [CALL for i in w]", false),
        ("try:\n    CALL\nexcept E:\n    pass", false),
        ("y = CALL +\nz = 3", false),
    ] {
        let found = flagged(AXIS, &shape.replace("CALL", call));
        assert_eq!(!found.is_empty(), is_said, "{shape}: {found:?}");
    }
}

/// For each predicate: a pattern with `@x` (and `@y`), bodies in which it holds, and bodies in which it does not or is
/// unknown.
#[test]
fn predicates_hold_where_that_is_certain() {
    let argument = "(call function: (identifier) @f arguments: (argument_list . (_) @x)) @here (#eq? @f \"f\")";
    let two = "(call function: (identifier) @f arguments: (argument_list . (_) @x . (_) @y)) @here (#eq? @f \"f\")";
    let call = "(expression_statement (call) @x) @here";
    let keyword = "(keyword_argument name: (identifier) @x) @here";
    let whole = "(attribute) @x @here";
    let rows: &[(&str, &str, &[&str], &[&str])] = &[
        (
            argument,
            "(#constexpr? @x)",
            &["f(4)", "f(B)", "f(B * 2)", "f(F)", "f((B))", "f(tl.float32)"],
            &["f(n)", "f(w)", "f(tl.load(x))", "F = w\nf(F)"],
        ),
        (
            argument,
            "(#not-constexpr? @x)",
            &["f(n)", "f(tl.load(x))", "f(n + 1)"],
            &["f(4)", "f(w)", "f(F)", "f(oops)"],
        ),
        (argument, "(#kind? @x \"pointer\")", &["f(x)", "f(x + tl.arange(0, 4))"], &["f(n)", "f(w)", "f(4)"]),
        (
            argument,
            "(#kind? @x \"int\")",
            &["f(n)", "f(4)", "f(tl.arange(0, 4))"],
            &["f(x)", "f(2.5)", "f(True)", "f(w)"],
        ),
        (
            argument,
            "(#kind? @x \"float\" \"bool\")",
            &["f(2.5)", "f(tl.load(x))", "f(n < 3)", "f(True)"],
            &["f(4)", "f(n)", "f(w)"],
        ),
        (argument, "(#kind? @x \"block\")", &["f(tl.arange(0, 4))"], &["f(n)", "f(4)", "f(w)", "f((4, 4))"]),
        (argument, "(#kind? @x \"scalar\")", &["f(n)", "f(4)", "f(B)"], &["f(tl.arange(0, 4))", "f(w)", "f(None)"]),
        (argument, "(#kind? @x \"tuple\")", &["f((4, 4))", "f([n])"], &["f(n)", "f(w)"]),
        (
            argument,
            "(#kind? @x \"none\" \"string\" \"dtype\")",
            &["f(None)", "f('a')", "f(tl.float16)"],
            &["f(n)", "f(w)", "f(4)"],
        ),
        (argument, "(#kind? @x \"function\")", &["f(tl.load)", "f(len)"], &["f(tl)", "f(n)", "f(w)"]),
        (argument, "(#kind? @x \"module\")", &["f(tl.math)", "f(torch)"], &["f(tl.load)", "f(n)"]),
        (
            argument,
            "(#not-kind? @x \"pointer\" \"block\")",
            &["f(n)", "f(4)", "f((4, 4))"],
            &["f(x)", "f(w)", "f(oops)"],
        ),
        (
            argument,
            "(#dtype? @x \"fp16\" \"int32\")",
            &["f(tl.load(x))", "f(n)", "f(tl.float16)"],
            &["f(x)", "f(w)", "f(4)"],
        ),
        (argument, "(#dtype? @x \"*float16\")", &["f(x)"], &["f(tl.load(x))", "f(w)"]),
        (
            argument,
            "(#rank? @x \"2\")",
            &["f(tl.zeros((4, 4), tl.int8))", "f(tl.arange(0, 4)[:, None])"],
            &["f(n)", "f(tl.arange(0, 4))", "f(w)"],
        ),
        (argument, "(#power-of-two? @x)", &["f(4)", "f(B)"], &["f(3)", "f(0)", "f(-2)", "f(F)", "f(n)"]),
        (argument, "(#not-power-of-two? @x)", &["f(3)", "f(B - 1)", "f(0)"], &["f(4)", "f(F)", "f(n)", "f(w)"]),
        (argument, "(#value? @x \"0\" \"None\")", &["f(0)", "f(None)", "f(B - 64)"], &["f(1)", "f(F)", "f(n)"]),
        (argument, "(#less? @x \"16\")", &["f(4)", "f(B // 8)"], &["f(16)", "f(B)", "f(F)", "f(n)"]),
        (argument, "(#not-less? @x \"16\")", &["f(16)", "f(B)"], &["f(4)", "f(F)"]),
        (
            argument,
            "(#lanes-less? @x \"16\")",
            &["f(tl.zeros((64, 8), tl.int8))"],
            &["f(tl.arange(0, 16))", "f(w)", "f(n)"],
        ),
        (
            two,
            "(#shapes-differ? @x @y)",
            &["f(tl.arange(0, 4), tl.arange(0, 8))", "f(n, tl.arange(0, 8))"],
            &["f(tl.arange(0, 4), tl.arange(0, 4))", "f(w, n)", "f(tl.arange(0, F), tl.arange(0, 8))"],
        ),
        (
            two,
            "(#not-broadcast? @x @y)",
            &["f(tl.arange(0, 4), tl.arange(0, 8))"],
            &["f(n, tl.arange(0, 8))", "f(tl.arange(0, 4), tl.arange(0, 4))", "f(w, w)"],
        ),
        (two, "(#not-same-dtype? @x @y)", &["f(n, tl.load(x))"], &["f(n, n)", "f(n, w)", "f(n, 3)"]),
        (
            argument,
            "(#api? @x \"tl.load\" \"torch.exp\" \"builtins.sum\" \"math.sqrt\")",
            &["f(tl.load)", "f(torch.exp)", "f(sum)", "f(math.sqrt)", "f(tl.core.load)"],
            &["f(tl.store)", "f(load)", "f(n.load)", "sum = n\nf(sum)"],
        ),
        (argument, "(#api? @x \"tl.tensor.to\")", &["f(n.to)", "f((n + 1).to)"], &["f(w.to)", "f(tl.to)", "f(B.to)"]),
        (argument, "(#not-api? @x \"tl.load\")", &["f(tl.store)"], &["f(tl.load)", "f(w)", "f(oops)"]),
        (
            whole,
            "(#unknown-member? @x)",
            &["f(tl.zap)", "tl.math.zap(x)"],
            &["f(tl.load)", "f(n.zap)", "f(torch.zap)", "f(tl.extra.zap)", "f(tl.zap, 'zap')"],
        ),
        (
            argument,
            "(#undefined? @x)",
            &["f(oops)"],
            &["f(n)", "f(N)", "f(plain)", "f(torch)", "f(sum)", "f(ValueError)", "oops = 3\nf(oops)"],
        ),
        (argument, "(#python-builtin? @x)", &["f(sum)", "f(len)"], &["f(n)", "f(oops)", "sum = n\nf(sum)"]),
        (argument, "(#parameter? @x)", &["f(n)", "f(B)"], &["f(N)", "y = n\nf(y)"]),
        (argument, "(#plain-parameter? @x)", &["f(n)", "f(w)"], &["f(B)", "n = 3\nf(n)", "f(N)"]),
        (argument, "(#local? @x)", &["f(n)", "y = n\nf(y)"], &["f(N)", "f(oops)"]),
        (
            argument,
            "(#global? @x \"assigned\" \"function\")",
            &["f(N)", "f(plain)"],
            &["f(torch)", "f(n)", "f(oops)", "f(k)"],
        ),
        (argument, "(#plain-global? @x)", &["f(N)"], &["f(plain)", "f(torch)", "f(n)", "f(oops)", "N = n\nf(N)"]),
        (
            keyword,
            "(#unknown-keyword? @x)",
            &["tl.load(x, axis=0)", "n.to(zap=3)", "k(x, zap=3)"],
            &[
                "tl.load(x, mask=n)",
                "torch.f(x, axis=0)",
                "w.load(axis=0)",
                "tl.zap(x, axis=0)",
                "tl.load(x, _semantic=n)",
            ],
        ),
        (call, "(#has-keyword? @x \"mask\")", &["tl.load(x, mask=n)"], &["tl.load(x, n)", "tl.load(x, **w)"]),
        (call, "(#not-has-keyword? @x \"mask\")", &["tl.load(x, n)"], &["tl.load(x, mask=n)", "tl.load(x, **w)"]),
        (call, "(#argument-count? @x \"2\")", &["f(n, n)", "f(n, a=n)"], &["f(n)", "f(*w, n)"]),
        (
            call,
            "(#too-many-arguments? @x)",
            &["tl.arange(0, 4, 8, 16, 32)", "k(1, 2, 3, 4, 5, 6)"],
            &["tl.arange(0, 4)", "tl.arange(*w)", "tl.device_print('a', n, n, n, n, n)", "oops(1)"],
        ),
        (
            call,
            "(#missing-argument? @x)",
            &["tl.arange(0)", "tl.store(x)"],
            &["tl.arange(0, 4)", "tl.arange(0, end=4)", "tl.load(x)", "tl.store(*w)", "oops()"],
        ),
        (
            call,
            "(#inside? @x \"for_statement\")",
            &["for i in range(n):\n    f(n)"],
            &["f(n)", "for i in range(n):\n    pass\nf(n)"],
        ),
    ];
    for (shape, predicate, holding, others) in rows {
        let (head, rest) = shape.split_at(shape.rfind("@here").unwrap() + "@here".len());
        // The predicates of a pattern are inside its parentheses.
        let pattern = format!("({head}\n{rest} {predicate})");
        for body in *holding {
            assert!(!flagged(&pattern, body).is_empty(), "{predicate} in {body}");
        }
        for body in *others {
            assert_eq!(flagged(&pattern, body), [""; 0], "{predicate} in {body}");
        }
    }
    let asked: String = rows.iter().map(|(_, predicate, ..)| *predicate).collect();
    for name in predicates::names().split(", ").map(|name| name.trim_matches(['`', '#'])) {
        assert!(asked.contains(&format!("#{name}")) || asked.contains(&format!("#not-{name}")), "{name} is not tested");
    }
}

#[test]
fn errors_in_patterns_are_explained() {
    let error = |text: &str| Pattern::compile(text).unwrap_err().to_string();
    assert_eq!(error(""), "it holds no pattern");
    assert_eq!(error("(call) @x"), "it needs a capture named `@here`, which marks the node to flag");
    assert_eq!(
        error("(call) @here (break_statement) @heretic"),
        "it needs a capture named `@here`, which marks the node to flag"
    );
    assert!(
        error("(call)\n(nonsense) @here").starts_with("line 2: NodeType: "),
        "{}",
        error("(call)\n(nonsense) @here")
    );
    assert!(error("(call @here").starts_with("line 1: Syntax: "));
    assert!(
        error("((call) @here (#zap? @here))").starts_with("`#zap?`: there is no such predicate; there are `#api?`, ")
    );
    assert_eq!(error("((call) @here (#rank? @here))"), "`#rank?`: needs at least one word");
    assert_eq!(error("((call) @here (#rank? @here @here \"2\"))"), "`#rank?`: takes 1 captures, not 2");
    assert_eq!(error("((call) @here (#not-less? @here \"x\"))"), "`#not-less?`: takes one whole number");
    assert!(error("((call) @here (#kind? @here \"thing\"))").contains("does not know `thing`; there are pointer, "));
    assert!(error("((call) @here (#dtype? @here \"thing\"))").contains("`thing` is not an element type"));
    assert!(error("((call) @here (#set! a b))").contains("no properties"));
    assert!(Pattern::compile("((call) @here (#match? @here \"(\"))").is_err());
}
