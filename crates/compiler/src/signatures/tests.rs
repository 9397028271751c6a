use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::kernel::{ImportTarget, ImportedFile, Links, RecordedArgument, RecordedLaunch};
use model::syntax::Source;

use super::*;

const HEAD: &str = "import torch\nimport triton\nimport triton.language as tl\n";

fn module_of(text: &str) -> (String, Module) {
    let text = format!("{HEAD}{text}");
    let module = Module::build(&Source::parse(text.as_str()));
    (text, module)
}

fn found(text: &str) -> Vec<Guess> {
    let (text, module) = module_of(text);
    guesses(&module, module.kernel("k").unwrap(), &text)
}

/// The types and values of a guess, in the order of names.
fn shown(guess: &Guess) -> String {
    let types = guess.signature.iter().map(|(name, word)| format!("{name}: {word}"));
    let value = |value| serde_json::to_string(value).unwrap();
    let values = guess.constexprs.iter().map(|(name, constant)| format!("{name}={}", value(constant)));
    types.chain(values).collect::<Vec<_>>().join(", ")
}

#[test]
fn a_complete_signature_comment_is_the_only_guess() {
    let all = found(
        "# warpsmith: signature x=*fp16 y=*ki64 n=i32=64 m=i32=65 one=i32=1 kept=i32=1 big=i64 p=None f=fp32 d=tensordesc<fp16[64, 32]> \
         B=64 T=tl.bfloat16 S='a' L=[1, (2, None)] M={'k': True}\n\
         @triton.jit(do_not_specialize=['kept'])\n\
         def k(x, y, n, m, one, kept, big, p, f, d, B: tl.constexpr, T: tl.constexpr, S: tl.constexpr, L: tl.constexpr, \
         M: tl.constexpr, C: tl.constexpr = 3): pass\n",
    );
    let [only] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(only.certainty, GuessOrigin::Written);
    assert_eq!(
        shown(only),
        r#"big: i64, d: tensordesc<fp16[64, 32]>, f: fp32, kept: i32, m: i32, n: i32, x: *fp16, y: *ki64, B=64, C=3, "#
            .to_owned()
            + r#"L={"tuple":[1,{"tuple":[2,null]}]}, M={"dict":[["k",true]]}, S="a", T={"dtype":"bfloat16"}, one=1, p=null"#
    );
    assert_eq!(only.aligned, ["n", "x", "y"]);
}

#[test]
fn what_a_comment_leaves_out_is_guessed() {
    let text = |comment: &str| format!("{comment}@triton.jit\ndef k(x, n, B: tl.constexpr):\n    tl.store(x + n, 1)\n");
    let all = found(&text("# warpsmith: signature x=*fp64\n"));
    assert!(all.len() > 1 || all[0].certainty == GuessOrigin::Guessed);
    assert!(
        all.iter().all(|guess| guess.certainty == GuessOrigin::Guessed && guess.signature["x"] == "*fp64"),
        "{all:?}"
    );
    assert!(found(&text("")).iter().all(|guess| guess.signature["x"] != "*fp64"));
}

#[test]
fn a_type_does_not_fix_a_constexpr_and_conditional_lists_count() {
    let all = found(
        "# warpsmith: signature n=i32=1 m=i32=1 o=i32=1 B=*fp16
@triton.jit(do_not_specialize=['n'] if new else [1])
def k(n, m, o, B: tl.constexpr): pass
",
    );
    let first = &all[0];
    assert_eq!((first.certainty, shown(first).as_str()), (GuessOrigin::Guessed, "m: i32, n: i32, B=2, o=1"));
}

#[test]
fn recorded_launches_come_with_each_configuration() {
    let (text, mut module) = module_of(
        "@triton.autotune(configs=[triton.Config({'B': 64}), triton.Config({'B': 128})], key=[])\n\
         @triton.jit(do_not_specialize_on_alignment=['m'])\n\
         def k(x, n, m, one, w, u, on, s, p, B: tl.constexpr): pass\n",
    );
    let passed = |pointer| {
        let values = [
            ("x", RecordedArgument::Pointer(pointer)),
            ("n", RecordedArgument::Integer(96)),
            ("m", RecordedArgument::Integer(96)),
            ("one", RecordedArgument::Integer(1)),
            ("w", RecordedArgument::Integer(1 << 40)),
            ("u", RecordedArgument::Integer((1 << 63) + 1)),
            ("on", RecordedArgument::Bool(true)),
            ("s", RecordedArgument::Float(0.5)),
            ("p", RecordedArgument::None),
        ];
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Vec<_>>()
    };
    let launch = |arguments| RecordedLaunch { kernel: "k".to_owned(), arguments, grid: vec![1], options: Vec::new() };
    module.observe([launch(passed(Some("bf16")))].into());
    let kernel = |module: &Module| guesses(module, &module.kernels[0], &text);
    let all = kernel(&module);
    let expected =
        |block| format!("m: i32, n: i32, on: i1, s: fp32, u: u64, w: i64, x: *bf16, B={block}, one=1, p=null");
    assert_eq!(all.iter().map(shown).collect::<Vec<_>>(), [expected(64), expected(128)]);
    assert!(all.iter().all(|guess| guess.certainty == GuessOrigin::Recorded));
    assert_eq!(all[0].aligned, ["n", "w", "x"]);

    // The element types are unknown in kernels, but the rest of the signature is still a hint.
    module.observe([launch(passed(None))].into());
    let all = kernel(&module);
    assert!(!all.is_empty() && all.iter().all(|guess| guess.certainty == GuessOrigin::Guessed));
    assert!(all.iter().all(|guess| guess.signature["w"] == "i64"));
}

#[test]
fn guesses_use_the_arguments_of_the_files_launches() {
    let all = found(
        "@triton.jit
def k(x, y, z, bias, n, stride, step, scale, eps, B: tl.constexpr, ACT: tl.constexpr, USE: tl.constexpr, N: tl.constexpr):
    tl.store(y + tl.load(x + n) + tl.load(z), 1)
    if bias is not None:
        tl.store(bias, 1)
def host(a, b, c):
    x = torch.empty((32, 64), dtype=torch.float16, device='cuda')
    y = torch.zeros_like(x, dtype=torch.int64)
    k[(1,)](x, y, b.to(torch.uint8), None, x.numel(), a.stride(0), a.stride(1) * 2, c ** -0.5, 1e-6, B=128, ACT='silu', \
USE=c is not None, N=x.shape[1])
",
    );
    let first = &all[0];
    assert_eq!(first.certainty, GuessOrigin::Guessed);
    assert_eq!(
        shown(first),
        r#"eps: fp32, n: i32, scale: fp32, step: i32, stride: i32, x: *fp16, y: *i64, z: *u8, ACT="silu", B=128, N=64, USE=true, bias=null"#
    );
    assert_eq!(first.aligned, ["n", "x", "y", "z"]);
    assert!(all.iter().any(|guess| guess.constexprs["USE"] == Constant::Bool(false)));
    assert!(all.iter().all(|guess| guess.signature["x"] == "*fp16" && guess.constexprs["B"] == Constant::Int(128)));
}

#[test]
fn the_first_configuration_of_a_comprehension_is_evaluated() {
    let all = found(
        "SIZES = [32, 64] if fast() else [16]
@triton.autotune([triton.Config({'B': b, 'C': b * 2, 'D': d}, num_warps=w) for b in SIZES for d in [8, 16] for w in (2, 4)], key=['n'])
@triton.jit
def k(n, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr): pass
",
    );
    let values = |guess: &Guess| ["B", "C", "D"].map(|name| guess.constexprs[name].clone());
    assert_eq!(values(&all[0]), [32, 64, 8].map(Constant::Int));
}

#[test]
fn parameter_types_are_guessed_from_their_uses() {
    let all = found(
        "@triton.jit
def k(x, where, ends, out, half: tl.int64, step, rate, mode: tl.constexpr, kind: tl.constexpr, on: tl.constexpr, T: tl.constexpr, P: tl.constexpr):
    i = tl.load(where + tl.program_id(0))
    for j in range(tl.load(ends)):
        v = tl.load(x + i + j, mask=j < 3, other=0.0)
        if on and mode == 'sum':
            v = tl.dot(v, v, input_precision=P)
        elif mode == 'max' or kind == 3 or kind == 5:
            v = v.to(T)
        p = out
        p += half
        p += step
        tl.store(p + j, v)
",
    );
    let first = &all[0];
    assert_eq!(
        shown(first),
        r#"ends: *i32, half: i64, out: *bf16, rate: i32, step: i32, where: *i32, x: *bf16, P="ieee", T={"dtype":"bfloat16"}, kind=3, mode="sum", on=true"#
    );
    let pick = |name: &str| all.iter().map(|guess| guess.constexprs[name].clone()).collect::<Vec<_>>();
    assert!(pick("on").contains(&Constant::Bool(false)));
    assert!(pick("mode").contains(&Constant::Str("max".to_owned())) && pick("kind").contains(&Constant::Int(5)));
    let elements: BTreeSet<&str> = all.iter().map(|guess| guess.signature["x"].as_str()).collect();
    assert_eq!(elements, BTreeSet::from(["*bf16", "*fp16", "*fp32"]));
    assert!(all.len() <= MAX);
}

#[test]
fn integer_sums_and_products_determine_element_types() {
    let all = found(
        "@triton.jit
def k(counts, q, w, slots):
    n = 0
    for i in range(4):
        n += tl.sum(tl.load(counts + i))
    s = tl.dot(tl.load(q), tl.load(w))
    tl.store(slots + s, n.to(slots.dtype.element_ty))
",
    );
    assert_eq!(shown(&all[0]), "counts: *i32, q: *bf16, slots: *bf16, w: *bf16");
}

#[test]
fn values_added_to_pointers_are_guessed_as_integers() {
    let all = found(
        "@triton.jit
def address(p, i):
    return tl.load(p + i).to(tl.pointer_type(tl.bfloat16))

@triton.jit
def k(x, rows, table, keys, other, y, weight, scale: float, limit, bits, OUTPUT_DTYPE: tl.constexpr):
    x += tl.load(rows) * weight
    v = tl.load(x) * scale
    offset = tl.arange(0, 16) * 2
    offset += tl.where(limit > 0, other, y)
    found = tl.load(keys) >> bits
    tl.store(offset, v.to(OUTPUT_DTYPE) + (found > 1) * tl.load(address(table, 1)))
",
    );
    assert_eq!(
        shown(&all[0]),
        "bits: i32, keys: *i32, limit: fp32, other: *bf16, rows: *i32, scale: fp32, table: *i64, weight: i32, x: *bf16, y: *bf16, "
            .to_owned()
            + r#"OUTPUT_DTYPE={"dtype":"bfloat16"}"#
    );
}

#[test]
fn kernels_with_descriptors_or_tuples_get_no_guess() {
    let guessed = |params: &str, body: &str| {
        !found(&format!(
            "@triton.jit\ndef f(d):\n    return d.load([0])\n\n@triton.jit\ndef k({params}):\n    {body}\n"
        ))
        .is_empty()
    };
    assert!(guessed("x", "tl.load(x)"));
    assert!(guessed("x, S: tl.constexpr", "tl.load(x + S[0])"));
    assert!(!guessed("d", "d.store([0, 0], 1)"));
    assert!(!guessed("d", "f(d)"));
    assert!(!guessed("t", "tl.load(t[0])"));
    assert!(!guessed("*args", "pass"));
    assert!(!guessed("x, y", "return tl.exp(x) * y"));
}

#[test]
fn cyclic_definitions_and_long_helper_chains_terminate() {
    let circle = "@triton.jit\ndef k(x, on: tl.constexpr):\n    tl.load(x)\ndef host():\n    on = on or on\n    a = b + 1\n    b = a\n    \
                  c = d.view(1)\n    d = c.view(1)\n    k[(1,)](c, on)\n    k[(1,)](b, on)\n";
    assert!(!found(circle).is_empty());
    let helper = |n: usize| format!("@triton.jit\ndef f{n}(p):\n    f{}(p)\n", n + 1);
    let chain: String = (0..2000).map(helper).collect();
    let all = found(&format!("{chain}@triton.jit\ndef k(x):\n    tl.load(x)\n    f0(x)\n"));
    assert_eq!(all[0].signature["x"], "*bf16");
}

#[test]
fn helpers_of_other_files_determine_parameter_types() {
    let text = format!(
        "{HEAD}from ops import f\n@triton.jit\ndef k(a, b, c: tl.constexpr, D: tl.constexpr):\n    f(a, b, c, d=D)\n\n\
         @triton.jit\ndef again(a):\n    again(a)\n    tl.load(a)\n"
    );
    let helpers = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef f(p, q, on, d):\n    g(p, q)\n    if on:\n        \
                   tl.store(p, 1)\n    elif d == 'x':\n        pass\n\n@triton.jit\ndef g(p, q):\n    tl.load(p + tl.load(q))\n";
    let source = Source::parse(helpers);
    let linked = ImportedFile {
        path: PathBuf::from("ops"),
        text: Arc::clone(source.text()),
        module: Module::build_whole(&source),
    };
    let files = HashMap::from([("ops.f", Arc::new(linked))]);
    let mut module = Module::build(&Source::parse(text.as_str()));
    let links = Links::follow(&module, Path::new("k"), &mut |_, import| {
        let member = import.split('.').next_back().map(str::to_owned);
        Some(ImportTarget { file: Arc::clone(files.get(import)?), member })
    });
    module.link(Arc::new(links));
    let all = guesses(&module, module.kernel("k").unwrap(), &text);
    assert_eq!(shown(&all[0]), r#"a: *bf16, b: *i32, D="x", c=true"#);
    assert_eq!(guesses(&module, module.kernel("again").unwrap(), &text)[0].signature["a"], "*bf16");
}

#[test]
fn a_guess_is_written_as_the_worker_reads_it() {
    let all = found("# warpsmith: signature x=*fp16 B=64\n@triton.jit\ndef k(x, B: tl.constexpr): pass\n");
    let json = serde_json::to_string(&all[0]).unwrap();
    assert_eq!(json, r#"{"signature":{"x":"*fp16"},"constexprs":{"B":64},"aligned":["x"],"certainty":"written"}"#);
}

#[test]
fn the_calls_of_the_file_give_types_sizes_and_strides() {
    let all = found(
        "@triton.jit
def k(x, out, row, last, n, scale, on, B: tl.constexpr, D: tl.constexpr):
    tl.store(out + n, tl.load(x + n) * scale)

def run(x, scale=0.5):
    out = torch.empty(x.shape, dtype=torch.float32)
    k[(1,)](x, out, x.stride(0), x.stride(1), x.shape[1], scale, True, B=triton.next_power_of_2(x.shape[1]), D=x.dtype)

if __name__ == '__main__':
    run(torch.ones((48, 300), dtype=torch.float16))
    run(torch.ones((48, 320), dtype=torch.bfloat16))
",
    );
    let types = |x: &str| format!("n: i32, on: i1, out: *fp32, row: i32, scale: fp32, x: *{x}, ");
    let values = |dtype: &str| format!(r#"B=512, D={{"dtype":"{dtype}"}}, last=1"#);
    assert_eq!(shown(&all[0]), types("fp16") + &values("float16"));
    assert_eq!(all[0].aligned, ["out", "x"]);
    assert_eq!(shown(&all[1]), types("bf16") + &values("bfloat16"));
    assert_eq!(all[1].aligned, ["n", "out", "row", "x"]);
}
