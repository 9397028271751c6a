//! Transfer functions of libdevice, CUDA's library of mathematical functions.

use super::dtype::Dtype;
use super::engine::Engine;
use super::value::{AbstractValue, LaneType, ProblemKind, RuntimeValue};
use crate::syntax::Span;

/// Functions of libdevice with one float argument.
const FLOATS: &[&str] = &[
    "acos", "asin", "atan", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "floor",
    "log", "log10", "log1p", "log2", "rint", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
];

impl<'a> Engine<'a> {
    /// A call of a function of libdevice: elementwise, for floats of 32 and 64 bits.
    pub(super) fn libdevice(&mut self, span: Span, name: &str, values: &[AbstractValue<'a>]) -> AbstractValue<'a> {
        const INTEGERS: &[&str] = &[
            "abs",
            "brev",
            "byte_perm",
            "clz",
            "ffs",
            "hadd",
            "ilogb",
            "max",
            "min",
            "mul24",
            "mulhi",
            "popc",
            "rhadd",
            "sad",
        ];
        const OTHERS: &[&str] = &[
            "finitef",
            "isfinited",
            "isinf",
            "isnan",
            "signbit",
            "ldexp",
            "scalbn",
            "powi",
            "pow",
            "jn",
            "yn",
            "cyl_bessel_i0",
        ];
        let mut tiles = Vec::new();
        for value in values {
            let Some(operand) = self.operand(span, value) else { return AbstractValue::Unknown };
            tiles.push(operand.tile);
        }
        let Some(first) = tiles.first().cloned() else { return AbstractValue::Unknown };
        if INTEGERS.contains(&name) || OTHERS.contains(&name) || name.contains('2') || name.contains("_r") {
            return AbstractValue::Unknown;
        }
        let takes_two = ["atan2", "fmod", "pow", "hypot", "copysign", "nextafter", "fdim"].contains(&name);
        if takes_two && tiles.len() != 2 {
            self.problem(
                ProblemKind::Keyword,
                span,
                format!("`libdevice.{name}` takes two values, and gets {}", tiles.len()),
            );
            return AbstractValue::Unknown;
        }
        let mut shape = first.shape.clone();
        for tile in &tiles[1..] {
            let joined = RuntimeValue::new(first.element, shape.clone());
            shape = self.common_shape(span, &joined, tile);
        }
        let numbers: Option<Vec<Dtype>> = tiles.iter().map(|tile| tile.element.number()).collect();
        let Some(numbers) = numbers else { return AbstractValue::Tile(RuntimeValue::new(LaneType::Unknown, shape)) };
        let wide = if numbers.contains(&Dtype::Fp64) { Dtype::Fp64 } else { Dtype::Fp32 };
        if let [number] = numbers.as_slice()
            && (matches!(number, Dtype::Fp16 | Dtype::Bf16) || number.is_int() && FLOATS.contains(&name))
        {
            let message = format!(
                "`libdevice.{name}` takes `fp32` and `fp64`, not `{}`; cast with `.to(tl.float32)`",
                numbers[0]
            );
            self.problem(ProblemKind::Argument, span, message);
            return AbstractValue::Unknown;
        }
        if !numbers.iter().all(|number| *number == wide) {
            return AbstractValue::Unknown;
        }
        AbstractValue::Tile(RuntimeValue::new(LaneType::Number(wide), shape))
    }
}
