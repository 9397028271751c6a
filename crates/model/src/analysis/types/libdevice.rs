//! Transfer functions of libdevice, CUDA's library of mathematical functions.

use super::dtype::Number;
use super::engine::Engine;
use super::value::{Element, Kind, Tile, Value};
use crate::syntax::Span;

/// Functions of libdevice with one float argument.
const FLOATS: &[&str] = &[
    "acos", "asin", "atan", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp", "exp10", "exp2", "expm1", "floor",
    "log", "log10", "log1p", "log2", "rint", "round", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
];

impl<'a> Engine<'a> {
    /// A call of a function of libdevice: elementwise, for floats of 32 and 64 bits.
    pub(super) fn libdevice(&mut self, span: Span, name: &str, values: &[Value<'a>]) -> Value<'a> {
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
            let Some(operand) = self.operand(span, value) else { return Value::Unknown };
            tiles.push(operand.tile);
        }
        let Some(first) = tiles.first().cloned() else { return Value::Unknown };
        if INTEGERS.contains(&name) || OTHERS.contains(&name) || name.contains('2') || name.contains("_r") {
            return Value::Unknown;
        }
        let takes_two = ["atan2", "fmod", "pow", "hypot", "copysign", "nextafter", "fdim"].contains(&name);
        if takes_two && tiles.len() != 2 {
            self.problem(Kind::Keyword, span, format!("`libdevice.{name}` takes two values, and gets {}", tiles.len()));
            return Value::Unknown;
        }
        let mut shape = first.shape.clone();
        for tile in &tiles[1..] {
            let joined = Tile::new(first.element, shape.clone());
            shape = self.common_shape(span, &joined, tile);
        }
        let numbers: Option<Vec<Number>> = tiles.iter().map(|tile| tile.element.number()).collect();
        let Some(numbers) = numbers else { return Value::Tile(Tile::new(Element::Unknown, shape)) };
        let wide = if numbers.contains(&Number::Fp64) { Number::Fp64 } else { Number::Fp32 };
        if let [number] = numbers.as_slice()
            && (matches!(number, Number::Fp16 | Number::Bf16) || number.is_int() && FLOATS.contains(&name))
        {
            let message = format!(
                "`libdevice.{name}` takes `fp32` and `fp64`, not `{}`; cast with `.to(tl.float32)`",
                numbers[0]
            );
            self.problem(Kind::Argument, span, message);
            return Value::Unknown;
        }
        if !numbers.iter().all(|number| *number == wide) {
            return Value::Unknown;
        }
        Value::Tile(Tile::new(Element::Number(wide), shape))
    }
}
