//! A sweep over everything that Triton offers, with arguments of every form. Most of these programs fail; those that
//! compile disprove rules that are too general.

use base::rng::Rng;
use model::api::{MemberKind, Table};

use super::program::KernelProgram;

/// Values of each form that occurs in kernels; the names are those of `HEAD`.
const VALUES: &[&str] = &[
    "x",
    "h",
    "i",
    "j",
    "m",
    "t",
    "u",
    "n",
    "s",
    "C",
    "p",
    "q",
    "w",
    "p + o",
    "q + o",
    "w + o",
    "o",
    "pid",
    "x > 0",
    "n > 0",
    "total",
    "0",
    "1",
    "2",
    "16",
    "-1",
    "1.0",
    "0.5",
    "True",
    "None",
    "\"add\"",
    "(C,)",
    "(C, C)",
    "(1, 0)",
    "[C]",
    "tl.float32",
    "tl.int32",
    "tl.float16",
    "(x, i)",
    "C // 2",
    "2 ** 40",
    "p.dtype.element_ty",
    "x.to(tl.int64)",
    "x[:, None]",
    "x[None, :]",
    "(w + o).to(tl.pointer_type(tl.int64))",
    "f",
    "v",
    "b",
    "(x, x)",
    "m[:, None]",
    "(0,)",
    "(0, 1)",
    "[0, 0]",
    "tl.make_tensor_descriptor(p, [n, C], [C, 1], [C, C])",
    "tl.make_block_ptr(p, (n, C), (C, 1), (0, 0), (C, C), (1, 0))",
];

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "@", "==", "!=", "<", ">=", "is", "is not", "and",
    "or",
];

/// Members that follow a value.
const MEMBERS: &[&str] = &[
    "T",
    "shape",
    "dtype",
    "type",
    "numel",
    "value",
    "element_ty",
    "is_block()",
    "shape[0]",
    "dtype.primitive_bitwidth",
];

/// Statements around values; each `{}` is replaced by a value.
const STATEMENTS: &[&str] = &[
    "if {}:\n        x += 1",
    "while {}:\n        n -= 1",
    "for k in range({}):\n        x += k",
    "for k in range({}, {}):\n        x += k",
    "for k in tl.range({}, {}, num_stages=2):\n        x += k",
    "for k in tl.static_range({}):\n        x += k",
    "x += {}",
    "x = {}",
    "n = {}",
    "r, r2 = {}",
    "r = {} if {} else {}",
    "r = not {}",
    "r = {} and {}",
    "r = -({})",
    "r = ~({})",
    "r = ({})[{}]",
    "r = ({})[:, None]",
    "r = ({})[None, :, None]",
    "r = ({}, {})",
    "return {}",
    "assert {}",
    "r: tl.constexpr = {}",
    "tl.store(w + o, {}, mask={})",
    "tl.store(w + o, {})",
    "tl.store({}, {})",
    "r = tl.load({})",
    "print({}, {})",
    "r = x if {} else h",
    "while {}:\n        x += {}",
    "if n > 0:\n        r = {}\n    else:\n        r = {}",
    "for k in range(n):\n        x = {}",
    "for k in range(n):\n        i = {}",
    "r = (x, i)[{}]",
    "r = ({})[:, :, None]",
    "r = ({})[None]",
    "r = ({})[0]",
    "r = ({})[{}:{}]",
    "return ({}, {})",
    "assert {}, {}",
    "del {}",
    "r = [{}, {}]",
    "r = {} < {} < {}",
    "r = {} in ({}, {})",
    "r = len({})",
    "r = min({}, {})",
    "r = max({}, {})",
    "r = abs({})",
    "r = int({})",
    "r = float({})",
    "r = str({})",
    "r = sum({})",
    "({}).store({})",
    "r = ({}).load()",
    "r = ({}).load({})",
    "({}).store({}, {})",
    "r = tl.load({}, boundary_check={})",
    "tl.store({}, {}, boundary_check={})",
    "d = tl.make_tensor_descriptor(p, [n, C], [C, 1], [C, C])\n    r = d.load({})",
    "d = tl.make_tensor_descriptor(p, [n, C], [C, 1], [C, C])\n    r = d.load([{}, {}])",
    "d = tl.make_tensor_descriptor(p, [n, C], [C, 1], [C, C])\n    d.store([{}, {}], {})",
    "d = tl.make_tensor_descriptor(p, [n, C], [C, 1], [C, C])\n    d.store([n, 0], {})",
    "d = tl.make_tensor_descriptor(p, {}, {}, {})",
    "d = tl.make_tensor_descriptor(p, [n, {}], [{}, 1], [C, {}])",
    "d = tl.make_block_ptr(p, (n, C), (C, 1), (0, 0), (C, C), (1, 0))\n    r = tl.load(d, boundary_check={})",
    "d = tl.make_block_ptr(p, (n, C), (C, 1), (0, 0), (C, C), (1, 0))\n    d = tl.advance(d, ({}, {}))",
    "d = tl.make_block_ptr(p, (n, C), (C, 1), (0, 0), (C, C), (1, 0))\n    tl.store(d, {})",
];

/// Calls with the strings that an argument accepts; `{}` is replaced by each of them.
const SPELLED: &[(&str, &[&str])] = &[
    ("r = tl.load(p + o, cache_modifier=\"{}\")", &[".ca", ".cg", ".cv"]),
    ("r = tl.load(p + o, mask=m, other=0.0, cache_modifier=\"{}\")", &[".ca", ".cg", ".cv"]),
    ("r = tl.load(p + o, eviction_policy=\"{}\")", &["evict_first", "evict_last"]),
    ("r = tl.load(p + o, mask=m, eviction_policy=\"{}\")", &["evict_first", "evict_last"]),
    (
        "r = tl.load(tl.make_block_ptr(p, (n,), (1,), (0,), (C,), (0,)), boundary_check=(0,), padding_option=\"{}\")",
        &["zero", "nan"],
    ),
    ("tl.store(p + o, x, cache_modifier=\"{}\")", &[".wb", ".cg", ".cs", ".wt"]),
    ("tl.store(p + o, 1.0, cache_modifier=\"{}\")", &[".wb", ".cg", ".cs", ".wt"]),
    ("tl.store(p + o, x, mask=m, eviction_policy=\"{}\")", &["evict_first", "evict_last"]),
    ("r = tl.atomic_add(p + o, x, sem=\"{}\")", &["relaxed", "acquire", "release", "acq_rel"]),
    ("r = tl.atomic_add(p + o, 1, sem=\"{}\")", &["relaxed", "acquire", "release", "acq_rel"]),
    ("r = tl.atomic_add(p + o, x, mask=m, scope=\"{}\")", &["gpu", "cta", "sys"]),
    ("r = tl.atomic_add(p + o, 1, scope=\"{}\")", &["gpu", "cta", "sys"]),
    ("r = tl.atomic_max(q + o, i, mask=m, sem=\"{}\")", &["relaxed", "acquire", "release", "acq_rel"]),
    ("r = tl.atomic_xchg(q + o, i, scope=\"{}\")", &["gpu", "cta", "sys"]),
    ("r = tl.atomic_cas(q, 0, 1, sem=\"{}\")", &["relaxed", "acquire", "release", "acq_rel"]),
    ("r = tl.dot(t, t, input_precision=\"{}\")", &["ieee", "tf32", "tf32x3"]),
    ("r = tl.dot(u, u, input_precision=\"{}\")", &["ieee", "tf32", "tf32x3"]),
    ("r = x.to(tl.float16, fp_downcast_rounding=\"{}\")", &["rtne", "rtz"]),
];

/// The beginning of each program.
const HEAD: &str = "import triton
import triton.language as tl


# warpsmith: signature p=*fp32 q=*i32 w=*i64 n=i32 s=fp32 C=16
@triton.jit
def swept(p, q, w, n, s, C: tl.constexpr):
    pid = tl.program_id(0)
    o = tl.arange(0, C)
    x = tl.load(p + o)
    h = x.to(tl.float16)
    i = tl.load(q + o)
    j = tl.load(w + o)
    m = o < n
    t = tl.zeros((C, C), tl.float32)
    u = t.to(tl.float16)
    f = h.to(tl.float8e5)
    v = i.to(tl.uint32)
    b = tl.make_block_ptr(p, (n,), (1,), (0,), (C,), (0,))
    total = tl.sum(x, axis=0)
    ";

/// `each` programs for each function, operator and statement with several values, drawn at random. A statement with one
/// value is generated with every value. Equal seeds give equal programs.
#[must_use]
pub fn sweep(table: &Table, each: usize, seed: u64) -> Vec<KernelProgram> {
    let mut chance = Rng::new(seed);
    let mut lines: Vec<String> = Vec::new();
    let members = table.modules.get("triton.language").into_iter().flatten();
    for (name, member) in members {
        if matches!(member.kind, MemberKind::Module | MemberKind::Dtype | MemberKind::Value) {
            continue;
        }
        let named: Vec<&str> = member.params.iter().map(|param| param.name.trim_start_matches('*')).collect();
        for _ in 0..each {
            lines.push(format!("r = tl.{name}({})", arguments(&named, &mut chance)));
            let rest = named.get(1..).unwrap_or_default();
            lines.push(format!("r = ({}).{name}({})", value(&mut chance), arguments(rest, &mut chance)));
        }
    }
    for operator in OPERATORS {
        lines.extend((0..each).map(|_| format!("r = ({}) {operator} ({})", value(&mut chance), value(&mut chance))));
    }
    let members: Vec<String> = MEMBERS.iter().map(|member| format!("r = ({{}}).{member}")).collect();
    for statement in STATEMENTS.iter().copied().chain(members.iter().map(String::as_str)) {
        let parts: Vec<&str> = statement.split("{}").collect();
        if let [before, after] = parts[..] {
            // There are few enough values to try them all.
            lines.extend(VALUES.iter().map(|value| format!("{before}{value}{after}")));
            continue;
        }
        for _ in 0..each {
            let line =
                parts.iter().map(|part| (*part).to_owned()).reduce(|line, rest| line + value(&mut chance) + &rest);
            lines.extend(line);
        }
    }
    lines.sort();
    lines.dedup();
    lines.iter().map(|line| swept(line)).collect()
}

/// Programs with each string that an argument accepts.
#[must_use]
pub fn spelled() -> Vec<KernelProgram> {
    let with = |(line, words): &(&str, &[&str])| -> Vec<KernelProgram> {
        words.iter().map(|word| swept(&line.replace("{}", word))).collect()
    };
    SPELLED.iter().flat_map(with).collect()
}

/// The program of a sweep without a statement that may fail.
#[must_use]
pub(super) fn plain() -> KernelProgram {
    swept("r = x")
}

fn swept(line: &str) -> KernelProgram {
    KernelProgram::new(format!("{HEAD}{line}\n"), "swept")
}

fn value(chance: &mut Rng) -> &'static str {
    VALUES[chance.below(VALUES.len() as u64) as usize]
}

/// Random arguments of a function with these parameters: some positional, some by name, and occasionally one too many.
fn arguments(named: &[&str], chance: &mut Rng) -> String {
    let most = named.len().min(5) + usize::from(chance.below(8) == 0);
    let placed = chance.below(most as u64 + 1) as usize;
    let mut given: Vec<String> = (0..placed).map(|_| value(chance).to_owned()).collect();
    for name in named.iter().skip(placed).filter(|name| !name.is_empty()) {
        if chance.below(4) == 0 {
            given.push(format!("{name}={}", value(chance)));
        }
    }
    given.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::kernel::Module;
    use model::syntax::Source;

    #[test]
    fn a_sweep_is_deterministic_and_calls_all_functions() {
        let (one, again) = (sweep(Table::newest(), 2, 7), sweep(Table::newest(), 2, 7));
        assert!(one == again && one != sweep(Table::newest(), 2, 8));
        for name in ["tl.dot(", "tl.make_tensor_descriptor(", "tl.where("] {
            assert!(one.iter().any(|program| program.text.contains(name)), "{name}");
        }
    }

    #[test]
    fn each_program_of_a_sweep_has_a_compilable_request() {
        for program in sweep(Table::newest(), 1, 3).into_iter().chain(spelled()) {
            let module = Module::build(&Source::parse(program.text.as_str()));
            assert!(module.kernel("swept").is_some() && program.request(false).is_some(), "{}", program.text);
        }
    }
}
