//! Tests of completion and signatures. `|` marks the cursor and is not part of the text.

mod arbitrary_texts;
mod cursor;
mod names;

use model::api::TritonTarget;
use model::kernel::Module;
use model::syntax::Source;

use super::complete::{self, Item};
use super::cursor_context::CursorContext;
use super::signature;

const HEAD: &str = "import triton\nimport triton.language as tl\n\n";

/// A kernel with a helper, a launch and a constant, around a body.
fn kernel(body: &str) -> String {
    let body = body.replace('\n', "\n    ");
    format!(
        "{HEAD}LIMIT = tl.constexpr(4)\nOTHER = 5\n\n@triton.jit\ndef helper(a, b=1):\n    return a + b\n\n\
         @triton.jit\ndef scale(x_ptr, n, BLOCK: tl.constexpr):\n    offsets = tl.arange(0, BLOCK)\n    {body}\n\n\
         def run(x, grid):\n    scale[grid](x, 3, BLOCK=64)\n\n@triton.jit\ndef after(y):\n    return helper(y)\n"
    )
}

fn ask<T>(text: &str, target: TritonTarget, answer: impl FnOnce(&CursorContext<'_>) -> T) -> T {
    let offset = text.find('|').unwrap();
    let source = Source::parse(text.replacen('|', "", 1));
    let module = Module::build(&source);
    answer(&CursorContext::new(&source, &module, target, 0, offset))
}

fn items_in(text: &str, version: &str) -> Vec<Item> {
    let target = TritonTarget::of(version.parse().unwrap());
    ask(text, target, |place| complete::at(place).map_or_else(Vec::new, |offer| offer.items))
}

/// The names that are offered.
fn offered(text: &str) -> Vec<String> {
    items_in(text, "3.6.0").into_iter().map(|item| item.name).collect()
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| known == name)
}

#[test]
fn completion_offers_members_of_the_users_triton_version() {
    let of = |version: &str| {
        let items = items_in(&kernel("x = tl.|"), version);
        items.into_iter().map(|item| item.name).collect::<Vec<_>>()
    };
    // The function was added in 3.4, the other one was removed in 3.9.
    assert!(!has(&of("3.3.0"), "make_tensor_descriptor") && has(&of("3.4.0"), "make_tensor_descriptor"));
    assert!(has(&of("3.8.0"), "advance") && !has(&of("3.9.0"), "advance"));
    let items = items_in(&kernel("x = tl.|"), "3.6.0");
    let load = items.iter().find(|item| item.name == "load").unwrap();
    assert!(load.signature.as_deref().unwrap().starts_with("(pointer, mask=None, other=None"), "{load:?}");
    assert_eq!(load.about, "compiler built-in · Triton 3.6.0");
    assert!(items.iter().all(|item| !item.name.starts_with('_')));
    // Names of the kernel are not members of the module.
    assert!(!items.iter().any(|item| item.name == "offsets"));
}

#[test]
fn members_are_offered_while_the_text_is_broken() {
    for body in [
        "x = tl.|",
        "x = tl.|\ny = 1",
        "x = tl.|\ntl.store(x_ptr, 1)",
        "x = tl.lo|(x_ptr",
        "tl.store(x_ptr + tl.|",
        "tl.store(x_ptr + tl.|)\ny = 1",
        "tl.store(x_ptr, tl.|,\n    mask=offsets < n)",
        "if tl.|:\n    y = 1",
        "for i in tl.|",
        "for i in tl.|:\n    y = 1",
        "x = (tl.|\nif n > 0:\n    y = 1",
        "x = tl\\\n  .|",
    ] {
        assert!(has(&offered(&kernel(body)), "load"), "{body}");
    }
    for (text, name) in [
        (format!("{HEAD}x = tl.math.|"), "exp"),
        (format!("{HEAD}x = triton.|"), "cdiv"),
        (format!("{HEAD}x = triton.language.math.|"), "exp"),
        (format!("{HEAD}language = tl\nx = language.|"), "load"),
        (format!("{HEAD}@triton.|\ndef f(x):\n    pass\n"), "autotune"),
        (format!("{HEAD}@triton.jit\ndef f(x, B: tl.|):\n    pass\n"), "constexpr"),
        ("from triton.language import |".to_owned(), "load"),
        ("from triton.language import (load,\n  st|".to_owned(), "store"),
        ("import triton as t\nt.|".to_owned(), "jit"),
    ] {
        assert!(has(&offered(&text), name), "{text}");
    }
}

#[test]
fn code_around_a_broken_statement_stays_in_the_model() {
    for body in [
        "x = tl.|",
        "x += |",
        "x = tl.load(|",
        "x = tl.load(x_ptr + (offsets, |",
        "x = tl.load(x_ptr, other=|\n    )",
        "x = tl.load(x_ptr, mask=offsets < n and |",
        "tl.store(x_ptr + tl.|",
        "y = helper(|",
        "if |",
        "if tl.load(|:\n    y = 1",
        "for i in range(|",
        "for i in range(|:\n    y = 1",
        "return helper(|",
        "x = offsets[:, |",
        "x = not |",
        "x = 'abc|",
        "x = f'|",
        "@|",
        "def |",
    ] {
        let text = kernel(&format!("{body}\nlate = 1\nlater = late"));
        ask(&text, TritonTarget::newest(), |place| {
            let module = place.module();
            let scale = module.kernel("scale").unwrap();
            assert_eq!(place.kernel().map(|kernel| kernel.name.as_str()), Some("scale"), "{body}");
            for name in ["offsets", "late", "later"] {
                assert!(scale.locals.contains(name), "{body}: {:?}", scale.locals);
            }
            assert!(module.kernel("after").is_some_and(|after| after.locals.len() == 1), "{body}");
            assert_eq!(module.launches_of("scale").count(), 1, "{body}");
        });
    }
}

#[test]
fn a_valid_statement_is_not_replaced() {
    let text = kernel("pass");
    let text = text.replace("def scale(x_ptr, n,", "def scale(x_ptr,|\n          n,");
    ask(&text, TritonTarget::newest(), |place| {
        assert_eq!(place.module().kernel("scale").map(|kernel| kernel.params.len()), Some(3));
    });
}

#[test]
fn completion_offers_nothing_in_unknown_contexts() {
    for body in [
        "x = n.|",
        "x = y.tl.|",
        "x = 't|'",
        "# tl.|",
        "x = 1.|",
        "x = 1|",
        "tl = 1\nx = tl.|",
        "x = tl.extra.cuda.|",
        "x = tl.load.|",
        "for i|",
    ] {
        assert_eq!(offered(&kernel(body)), [""; 0], "{body}");
    }
    for text in ["x = tl.|", "import numpy as tl\ntl.|", "from numpy import |", "import triton\ndef f():\n    |"] {
        assert_eq!(offered(text), [""; 0], "{text}");
    }
}

#[test]
fn completion_offers_only_unused_keywords() {
    let names = offered(&kernel("x = tl.load(x_ptr, mask=None, |"));
    assert!(has(&names, "other") && !has(&names, "mask") && !has(&names, "pointer"), "{names:?}");
    let items = items_in(&kernel("x = tl.load(x_ptr, ot|)"), "3.6.0");
    let other = items.iter().find(|item| item.name == "other").unwrap();
    assert_eq!((other.insert.as_deref(), other.signature.as_deref()), (Some("other="), Some("=None")));
    let names = offered(&kernel("x = tl.load(x_ptr, mask=|"));
    assert!(!has(&names, "other") && has(&names, "offsets"), "{names:?}");
    let names = offered(&kernel("y = helper(n, |)"));
    assert!(has(&names, "b") && !has(&names, "a"), "{names:?}");
}

#[test]
fn completion_in_launches_offers_parameters_and_options() {
    let text = |arguments: &str| kernel("pass").replace("x, 3, BLOCK=64)", arguments);
    for (arguments, expected, absent) in [
        ("x, |)", &["n", "BLOCK", "num_warps", "num_stages"][..], &["x_ptr", "offsets", "load"][..]),
        ("x, |", &["n", "BLOCK", "num_warps"], &["x_ptr"]),
        ("x, n=3, num_warps=4, B|)", &["BLOCK", "num_stages"], &["n", "num_warps"]),
        ("*args, |)", &["x_ptr", "n", "BLOCK"], &[]),
        ("x,\n        |\n    )", &["n", "BLOCK"], &["x_ptr"]),
    ] {
        let names = offered(&text(arguments));
        assert!(expected.iter().all(|name| has(&names, name)), "{arguments}: {names:?}");
        assert!(!absent.iter().any(|name| has(&names, name)), "{arguments}: {names:?}");
    }
    // A parameter that a configuration sets must not be passed.
    let tuned = text("x, |)").replace(
        "@triton.jit\ndef scale",
        "@triton.autotune([triton.Config({'BLOCK': 64}, num_warps=4)], key=[])\n@triton.jit\ndef scale",
    );
    let names = offered(&tuned);
    assert!(has(&names, "n") && !has(&names, "BLOCK") && !has(&names, "num_warps"), "{names:?}");
    // For a kernel of another file, only the options of all kernels are offered.
    let names = offered(&text("x)\n    foreign[grid](x, |)"));
    assert!(has(&names, "num_warps") && !has(&names, "n"), "{names:?}");
}

#[test]
fn names_of_a_kernel_are_offered_inside_it() {
    for body in ["|", "y = 1\n|", "y = 1\n\n# note\noff|", "y = (o|", "if n > 0:\n    |", "y = n +|\n"] {
        let names = offered(&kernel(body));
        for name in ["x_ptr", "BLOCK", "offsets", "LIMIT", "helper", "tl"] {
            assert!(has(&names, name), "{body}: {name} is not in {names:?}");
        }
        assert!(!has(&names, "OTHER") && !has(&names, "scale") && !has(&names, "run"), "{names:?}");
    }
    // After the kernel, in the host function, and among the parameters.
    let text = kernel("pass");
    for text in [
        text.replace("\n\ndef run", "\n\n|\ndef run"),
        text.replace("    scale[", "    |scale["),
        text.replace("def scale(x_ptr", "def scale(|x_ptr"),
    ] {
        assert_eq!(offered(&text), [""; 0], "{text}");
    }
}

/// The label, and the parameter that is marked in it.
fn signature_at(text: &str) -> Option<(String, Option<String>)> {
    let found = ask(text, TritonTarget::of("3.6.0".parse().unwrap()), signature::at)?;
    let marked = found.active.map(|at| {
        let span = found.params[at].span;
        found.label[span.start..span.end].to_owned()
    });
    Some((found.label, marked))
}

#[test]
fn the_parameter_at_the_cursor_is_marked() {
    for (body, start, marked) in [
        ("tl.load(|", "load(pointer, mask=None, ", Some("pointer")),
        ("tl.load(x_ptr, |", "load(", Some("mask=None")),
        ("tl.load(x_ptr + (1, |", "load(", Some("pointer")),
        ("tl.load(x_ptr, other=|", "load(", Some("other=None")),
        ("tl.load(x_ptr, other=1, |", "load(", None),
        ("tl.load(*args, |", "load(", None),
        ("tl.load(x_ptr, eviction_policy='ev|')", "load(", Some("eviction_policy=\"\"")),
        ("tl.arange(0, 1, |)", "arange(start, end)", None),
        ("tl.math.exp(|)", "exp(x)", Some("x")),
        ("x = tl.zeros([|", "zeros(shape, dtype)", Some("shape")),
        ("tl.static_print(1, 2, |)", "static_print(", Some("*values")),
        ("helper(|", "helper(a, b=1)", Some("a")),
        ("helper(b=|", "helper(a, b=1)", Some("b=1")),
    ] {
        let (label, found) = signature_at(&kernel(body)).unwrap_or_else(|| panic!("{body}"));
        assert!(label.starts_with(start), "{body}: {label}");
        assert_eq!(found.as_deref(), marked, "{body}: {label}");
    }
    for body in ["tl.load(foo(|))", "foo(|)", "x = (|)", "tl.float32(|)", "tl.load(x_ptr)|", "# tl.load(|", "n(|)"] {
        assert_eq!(signature_at(&kernel(body)), None, "{body}");
    }
}

#[test]
fn launches_show_the_kernels_parameters() {
    let text = kernel("pass").replace("x, 3, BLOCK=64)", "x, 3, BLOCK=|");
    let found = ask(&text, TritonTarget::newest(), signature::at).unwrap();
    assert_eq!(found.label, "scale[grid](x_ptr, n, BLOCK: tl.constexpr)");
    assert_eq!(found.active, Some(2));
    assert!(found.params[2].about.as_deref().unwrap().contains("Compile-time"));
    assert_eq!(found.params[0].about, None);
    let tuned = text.replace(
        "@triton.jit\ndef scale",
        "@triton.autotune([triton.Config({'BLOCK': 64})], key=['n'])\n@triton.jit\ndef scale",
    );
    let found = ask(&tuned, TritonTarget::newest(), signature::at).unwrap();
    assert!(found.params[2].about.as_deref().unwrap().contains("triton.autotune"));
    // An argument after a star has no known position.
    for (arguments, marked) in [("x, |", None), ("x, BLOCK=|", Some("BLOCK: tl.constexpr"))] {
        let text = kernel("pass").replace("x, 3, BLOCK=64)", arguments).replace("x_ptr, n,", "x_ptr, *, n,");
        let (label, found) = signature_at(&text).unwrap();
        assert_eq!(label, "scale[grid](x_ptr, *, n, BLOCK: tl.constexpr)");
        assert_eq!(found.as_deref(), marked);
    }
    // Inside the parameter list of a definition there is no call.
    assert_eq!(signature_at(&kernel("pass").replace("def scale(", "def scale(|")), None);
}
