use super::*;
use crate::syntax::Source;

/// The parameters that a kernel with this body updates.
fn updated(body: &str) -> Vec<String> {
    let indented = body.trim().lines().map(|line| format!("    {line}\n")).collect::<String>();
    let text = format!(
        "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, y, n, FLAG: tl.constexpr):\n    o = \
         tl.arange(0, 64)\n{indented}"
    );
    let source = Source::parse(text.as_str());
    assert!(!source.has_error(), "{text}");
    let module = Module::build(&source);
    updates(&module, &module.kernels[0]).iter().map(|update| update.param.to_owned()).collect()
}

#[test]
fn a_changed_value_stored_at_its_address_is_an_update() {
    for body in [
        "v = tl.load(x + o)\ntl.store(x + o, v + 1)",
        "v = tl.load(x + o)\nv *= 2.0\ntl.store(x + o, v.to(tl.float16))",
        "p = x + o\nv = tl.load(p, mask=o < n)\nw = tl.exp(v)\ntl.store(p, w, mask=o < n)",
        "x += n * 64\nv = tl.load(x + o)\ntl.store(x + o, tl.load(y + o) - v)",
        "if FLAG:\n    v = tl.load(x + o)\n    tl.store(x + o, v * 2)",
        "a = tl.zeros([64], tl.float32)\nfor i in range(n):\n    p = x + i * 64 + o\n    a += tl.load(p)\n    if i > 0:\n        \
         tl.store(p, a)",
        "tl.atomic_add(x + o, 1.0)",
        "p = x + o\nif FLAG:\n    tl.atomic_add(p, 1.0, mask=o < n)",
    ] {
        assert_eq!(updated(body), ["x"], "{body}");
    }
}

#[test]
fn idempotent_stores_are_no_updates() {
    for body in [
        // Another tensor, another address, a pointer that was advanced.
        "v = tl.load(x + o)\ntl.store(y + o, v + 1)",
        "v = tl.load(x + o)\ntl.store(x + o + 64, v + 1)",
        "p = x + o\nv = tl.load(p)\np += 64\ntl.store(p, v + 1)",
        // Copies and selections.
        "v = tl.load(x + o)\ntl.store(x + o, tl.maximum(v, 0.0))",
        "v = tl.load(x + o)\ntl.store(x + o, tl.where(v > 0, v, 0.0))",
        "v = tl.load(x + o)\ntl.store(x + o, v * (v > 0))",
        "v = tl.load(x + o)\ntl.store(x + o, v / tl.sum(v))",
        // Written before it is read, perhaps by a helper.
        "tl.store(x + o, 0.0)\nv = tl.load(x + o)\ntl.store(x + o, v + 1)",
        "fill(x, o)\nv = tl.load(x + o)\ntl.store(x + o, v + 1)",
        // Read under a condition that may not hold at the write.
        "v = o\nif tl.program_id(0) > 0:\n    v = tl.load(x + o)\ntl.store(x + o, v + 1)",
        // Locks, and tensors that the kernel itself initializes.
        "old = tl.atomic_add(x, 1)\ntl.store(y, old)",
        "tl.atomic_xchg(x, 0)\ntl.atomic_add(x, 1)",
        "tl.atomic_max(x + o, 1.0)",
    ] {
        assert_eq!(updated(body), [""; 0], "{body}");
    }
}
