//! Converts 8-bit integers, such as quantized weights, to floats by cheaper instructions.

use base::rng::Rng;
use model::analysis::types::access::leftmost;
use model::kernel::ast::{Expr, ExprKind, walk_expressions};
use model::syntax::Span;
use protocol::ArgumentValue;
use rules::Edit;

use super::launched::called_with;
use super::loads::root;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;
use super::subject_launch::{only_launch, passed};
use super::written::{assigned, bindings};

/// Converts loaded 8-bit integers to floats in another way. `w.to(tl.float16)` converts one element at a time (`I2F`),
/// of which a multiprocessor does 16 per clock; that takes as long as the tensor cores need for a tile of 128 rows. For
/// `bfloat16`, Triton has special instructions for signed integers, and a further conversion from there is a shift. The
/// `float16` values between 1,024 and 2,047 are the integers, so the lowest bits of such a number can be the 8-bit
/// integer itself. All 256 values keep their value in each float type.
pub(super) struct Widened;

impl Skill for Widened {
    fn name(&self) -> &'static str {
        "widened"
    }

    fn about(&self) -> &'static str {
        "8-bit integers that become floats, as quantized weights do, through `bfloat16` or by the bits of a `float16`: a direct conversion is slow."
    }

    fn step(&self) -> StepSize {
        StepSize::Small
    }

    fn parts_ways(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        if subject.kernel.has_error {
            return Vec::new();
        }
        let found = conversions(subject);
        let of = |name: &str| subject.candidate.module.language_name(subject.kernel, name);
        let (Some(brain), Some(half), Some(short)) = (of("bfloat16"), of("float16"), of("int16")) else {
            return Vec::new();
        };
        let insert = |at: usize, text: String| Edit { span: Span::new(at, at), text };
        let signed = found.iter().filter(|one| one.is_signed);
        let through = signed.map(|one| insert(one.dot, format!(".to({brain})"))).collect();
        let bits = found.iter().flat_map(|one| {
            let (open, shifted, back) = if one.is_signed {
                ("(((", format!(".to({short}) + 128)"), "1152.0")
            } else {
                ("((", format!(".to({short})"), "1024.0")
            };
            let close = format!("{shifted} | 0x6400).to({half}, bitcast=True) - {back})");
            [insert(one.start, open.to_owned()), insert(one.dot, close)]
        });
        let bits = bits.collect();
        [
            ("widened bfloat16", "bytes through bfloat16", through),
            ("widened bits", "bytes by the bits of float16", bits),
        ]
        .into_iter()
        .filter_map(|(kind, what, edits)| Proposal::of_structure(kind, what, edits))
        .collect()
    }
}

/// `w.to(tl.float16)`, where `w` is loaded as 8-bit integers.
struct Conversion {
    /// The start of `w`.
    start: usize,
    /// The start of `.to`.
    dot: usize,
    is_signed: bool,
}

fn conversions(subject: &Subject<'_>) -> Vec<Conversion> {
    let text = subject.candidate.text.as_str();
    let mut found = Vec::new();
    walk_expressions(&subject.kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let ExprKind::Attribute { value, name, name_span } = &call.func.kind else { return };
        let [to] = call.args.as_slice() else { return };
        if name != "to" || to.keyword.is_some() || !is_float(subject, &to.value) {
            return;
        }
        let is_signed = match byte(subject, value, expr) {
            Some("int8") => true,
            Some("uint8") => false,
            _ => return,
        };
        // The operand may be in parentheses.
        found.extend(text[..name_span.start].rfind('.').map(|dot| Conversion {
            start: value.span.start,
            dot,
            is_signed,
        }));
    });
    found
}

/// Whether a conversion is to a float type, or to the type of another value; the conversion to `bfloat16` is fast
/// already.
fn is_float(subject: &Subject<'_>, to: &Expr) -> bool {
    match subject.candidate.module.language_member(subject.kernel, to).as_deref() {
        Some(name) => matches!(name, "float16" | "float32" | "float64"),
        None => matches!(&to.kind, ExprKind::Attribute { name, .. } if name == "dtype" || name == "element_ty"),
    }
}

/// The element type of a loaded value: `value` is a load, or a name that is only bound to loads, before `conversion`
/// replaces it.
fn byte<'a>(subject: &'a Subject<'a>, value: &Expr, conversion: &Expr) -> Option<&'a str> {
    let of_load = |value: &Expr| {
        let call = value.as_call().filter(|call| subject.member(call).as_deref() == Some("load"))?;
        element(subject, root(subject, call.argument("pointer", Some(0))?)?)
    };
    let Some(name) = value.as_name() else { return of_load(value) };
    let mut types = Vec::new();
    for stmt in bindings(&subject.kernel.body, name) {
        let given = assigned(stmt, name)?;
        if !std::ptr::eq(given, conversion) {
            types.push(of_load(given)?);
        }
    }
    types.dedup();
    if let [only] = types[..] { Some(only) } else { None }
}

/// The element type of a parameter's pointer in the call, as far as it is known.
fn element<'a>(subject: &'a Subject<'a>, param: &str) -> Option<&'a str> {
    let workload = subject.workload;
    let recorded = subject.records().flat_map(|launch| &launch.arguments).find(|(name, _)| name == param);
    if let Some((_, ArgumentValue::Pointer(dtype))) = recorded {
        return Some(dtype);
    }
    let given = match only_launch(subject) {
        // The kernel is launched by itself.
        None => workload.kwargs.iter().find(|(known, _)| known == param).map(|(_, value)| value),
        Some(launch) => {
            let host = &subject.candidate.module.hosts[launch.host?];
            let (_, passed) = passed(subject, launch).into_iter().find(|(name, _)| *name == param)?;
            let name = leftmost(&passed.value).filter(|_| host.qualname == workload.entry)?;
            called_with(host, workload, name)
        }
    };
    match given {
        Some(ArgumentValue::Tensor(tensor)) => Some(&tensor.dtype),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use protocol::{TensorSpec, Workload};
    use rules::apply_edits;

    const LOAD: &str = "    w = tl.load(w_ptr + offs)\n";

    /// The kernel's lines after the first two, for each proposal.
    fn turned(dtype: &str, body: &str) -> Vec<String> {
        let text = format!(
            "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x_ptr, w_ptr, B: tl.constexpr):\n    offs = tl.arange(0, B)\n    \
             x = tl.load(x_ptr + offs)\n{body}    tl.store(x_ptr + offs, x + y)\n\ndef run(x, w):\n    k[(1,)](x, w, B=8)\n"
        );
        let tensor =
            |dtype: &str| ArgumentValue::Tensor(TensorSpec { dtype: dtype.to_owned(), ..TensorSpec::default() });
        let args = vec![tensor("float16"), tensor(dtype)];
        let workload = Workload { entry: "run".to_owned(), args, ..Workload::default() };
        let candidate = Candidate::original(&text);
        let subject = Subject::new(&candidate, &text, "k", &workload).unwrap();
        let inside = |text: &str| {
            let start = text.find("x_ptr + offs)\n").unwrap() + "x_ptr + offs)\n".len();
            text[start..text.find("    tl.store").unwrap()].to_owned()
        };
        let turns = Widened.turns(&subject, &mut Rng::new(1));
        turns.iter().map(|turn| inside(&apply_edits(&text, &turn.edits))).collect()
    }

    #[test]
    fn bytes_become_floats_in_two_other_ways() {
        let body = format!("{LOAD}    y = w.to(x.dtype)  # widened\n");
        let through = body.replace("w.to(x", "w.to(tl.bfloat16).to(x");
        let bits =
            body.replace("w.to(x", "(((w.to(tl.int16) + 128) | 0x6400).to(tl.float16, bitcast=True) - 1152.0).to(x");
        assert_eq!(turned("int8", &body), [through.clone(), bits.clone()]);
        assert!(turned("int8", &through).is_empty() && turned("int8", &bits).is_empty(), "once is enough");
        let bits = body.replace("w.to(x", "((w.to(tl.int16) | 0x6400).to(tl.float16, bitcast=True) - 1024.0).to(x");
        assert_eq!(turned("uint8", &body), [bits]);
    }

    #[test]
    fn inline_loads_are_converted_and_names_stay_unique() {
        let body = "    y = (tl.load(w_ptr + offs)).to(tl.float32)\n";
        let all = turned("int8", body);
        assert_eq!(all[0], body.replace(").to", ").to(tl.bfloat16).to"));
        let bits = "    y = ((((tl.load(w_ptr + offs)).to(tl.int16) + 128) | 0x6400).to(tl.float16, bitcast=True) - 1152.0).to(tl.float32)\n";
        assert_eq!(all[1], bits);
        let taken = format!("{LOAD}    w = w.to(tl.float16)\n    y = w\n");
        assert_eq!(turned("int8", &taken)[0], taken.replace("w.to(", "w.to(tl.bfloat16).to("));
    }

    #[test]
    fn other_conversions_are_unchanged() {
        let plain = format!("{LOAD}    y = w.to(x.dtype)\n");
        for dtype in ["float16", "int32", "int16", "bool", "float8_e4m3fn"] {
            assert!(turned(dtype, &plain).is_empty(), "{dtype}");
        }
        for to in ["tl.bfloat16", "tl.int32", "tl.float16, bitcast=True", "dtype=tl.float16"] {
            assert!(turned("int8", &plain.replace("x.dtype", to)).is_empty(), "{to}");
        }
        let other = format!("{LOAD}    w = w + 1\n    y = w.to(x.dtype)\n");
        assert!(turned("int8", &other).is_empty());
        let later = format!("{LOAD}    w = w.to(tl.float16)\n    y = w.to(tl.float32)\n");
        assert!(turned("int8", &later)[0].contains("w.to(tl.bfloat16).to(tl.float16)\n    y = w.to(tl.float32)"));
    }
}
