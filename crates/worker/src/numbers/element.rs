//! Element types of tensors, and the meaning of their bits.

/// An element type with torch's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElementType {
    /// The name.
    pub name: &'static str,
    /// The size in bytes.
    pub size: usize,
    /// The meaning of the bits.
    pub kind: ElementKind,
}

/// The kinds of element types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ElementKind {
    /// Sign, exponent and mantissa.
    Float {
        /// The number of exponent bits.
        exponent: u32,
        /// The number of mantissa bits.
        mantissa: u32,
        /// Whether the type has infinities.
        infinite: bool,
    },
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// 0 or 1.
    Bool,
}

const fn float(name: &'static str, size: usize, exponent: u32, infinite: bool) -> ElementType {
    let mantissa = 8 * size as u32 - 1 - exponent;
    ElementType { name, size, kind: ElementKind::Float { exponent, mantissa, infinite } }
}

const fn whole(name: &'static str, size: usize, kind: ElementKind) -> ElementType {
    ElementType { name, size, kind }
}

const ALL: &[ElementType] = &[
    float("float64", 8, 11, true),
    float("float32", 4, 8, true),
    float("float16", 2, 5, true),
    float("bfloat16", 2, 8, true),
    float("float8_e5m2", 1, 5, true),
    float("float8_e4m3fn", 1, 4, false),
    whole("int64", 8, ElementKind::Signed),
    whole("int32", 4, ElementKind::Signed),
    whole("int16", 2, ElementKind::Signed),
    whole("int8", 1, ElementKind::Signed),
    whole("uint8", 1, ElementKind::Unsigned),
    whole("bool", 1, ElementKind::Bool),
];

impl ElementType {
    /// The type of this name, if it is known.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        ALL.iter().find(|element| element.name == name).copied()
    }

    /// Whether it is a float type.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self.kind, ElementKind::Float { .. })
    }

    /// For a float type: the exponent bias, the number of mantissa bits, and the lowest bit pattern that is no finite
    /// number.
    fn layout(self) -> (i32, u32, u64) {
        match self.kind {
            ElementKind::Float { exponent, mantissa, infinite } => {
                let top = ((1_u64 << exponent) - 1) << mantissa;
                let beyond = if infinite { top } else { top | ((1 << mantissa) - 1) };
                ((1 << (exponent - 1)) - 1, mantissa, beyond)
            }
            _ => (0, 0, 0),
        }
    }

    /// The distance from 1 to the next greater number.
    pub fn eps(self) -> f64 {
        2.0_f64.powi(-(self.layout().1 as i32))
    }

    /// The least normal number.
    pub fn tiny(self) -> f64 {
        2.0_f64.powi(1 - self.layout().0)
    }

    /// The greatest finite number, or the greatest integer.
    pub fn greatest(self) -> f64 {
        match self.kind {
            ElementKind::Float { .. } => self.decode(self.layout().2 - 1),
            ElementKind::Signed => 2.0_f64.powi(8 * self.size as i32 - 1) - 1.0,
            ElementKind::Unsigned => 255.0,
            ElementKind::Bool => 1.0,
        }
    }

    /// Minus infinity, or the least number where the type has no infinity.
    pub fn least(self) -> f64 {
        match self.kind {
            ElementKind::Float { infinite: true, .. } => f64::NEG_INFINITY,
            _ => -self.greatest(),
        }
    }

    /// The first bit pattern above the greatest finite magnitude.
    pub fn first_infinite(self) -> u64 {
        self.layout().2
    }

    /// The sign bit.
    #[must_use]
    pub fn sign_bit(self) -> u64 {
        1 << (8 * self.size - 1)
    }

    /// The number that bits represent.
    pub fn decode(self, bits: u64) -> f64 {
        match (self.kind, self.size) {
            (ElementKind::Float { .. }, 8) => f64::from_bits(bits),
            (ElementKind::Float { .. }, 4) => f64::from(f32::from_bits(bits as u32)),
            (ElementKind::Float { .. }, _) => {
                let (bias, mantissa, beyond) = self.layout();
                let sign = if bits & self.sign_bit() == 0 { 1.0 } else { -1.0 };
                let magnitude = bits & (self.sign_bit() - 1);
                if magnitude >= beyond {
                    let is_infinite = magnitude == beyond && self.least().is_infinite();
                    return if is_infinite { sign * f64::INFINITY } else { f64::NAN };
                }
                if magnitude >> mantissa == 0 {
                    return sign * magnitude as f64 * 2.0_f64.powi(1 - bias - mantissa as i32);
                }
                // In double precision the number has the same bits with another bias.
                let moved = (magnitude << (52 - mantissa)) + (((1023 - bias) as u64) << 52);
                sign * f64::from_bits(moved)
            }
            _ => self.integer(bits) as f64,
        }
    }

    /// The integer that bits represent.
    pub fn integer(self, bits: u64) -> i64 {
        let unused = 64 - 8 * self.size as u32;
        if self.kind == ElementKind::Signed { (bits << unused).cast_signed() >> unused } else { bits.cast_signed() }
    }

    /// The bits of the nearest number; ties go to the even one.
    pub fn encode(self, value: f64) -> u64 {
        match (self.kind, self.size) {
            (ElementKind::Float { .. }, 8) => value.to_bits(),
            (ElementKind::Float { .. }, 4) => u64::from((value as f32).to_bits()),
            (ElementKind::Float { .. }, _) => {
                let (bias, mantissa, beyond) = self.layout();
                let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
                if value.is_nan() {
                    return sign | (self.sign_bit() - 1);
                }
                // Above the range of the type the bits overflow into infinity, or into the type's NaN.
                let value = value.abs().min(2.0_f64.powi(bias + 2));
                let exponent = ((value.to_bits() >> 52) as i32 - 1023).max(1 - bias);
                let units = (value / 2.0_f64.powi(exponent - mantissa as i32)).round_ties_even() as u64;
                let bits = (((exponent + bias - 1) as u64) << mantissa) + units;
                sign | bits.min(beyond)
            }
            (ElementKind::Bool, _) => u64::from(value != 0.0),
            _ => self.of_integer(value as i64),
        }
    }

    /// The bits of an integer.
    pub fn of_integer(self, value: i64) -> u64 {
        match self.kind {
            ElementKind::Float { .. } => self.encode(value as f64),
            ElementKind::Bool => u64::from(value != 0),
            _ => value.cast_unsigned() & (u64::MAX >> (64 - 8 * self.size as u32)),
        }
    }

    /// Reads the bits of the element at a byte offset.
    pub fn read(self, bytes: &[u8], at: usize) -> u64 {
        // Where the size is known at compile time, reading an element is one instruction.
        match bytes[at..at + self.size] {
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        }
    }

    /// Writes the bits of the element at a byte offset.
    pub fn write(self, bytes: &mut [u8], at: usize, bits: u64) {
        let bits = bits.to_le_bytes();
        match self.size {
            1 => bytes[at] = bits[0],
            2 => bytes[at..at + 2].copy_from_slice(&bits[..2]),
            4 => bytes[at..at + 4].copy_from_slice(&bits[..4]),
            _ => bytes[at..at + 8].copy_from_slice(&bits),
        }
    }

    /// The pattern of eight bytes with which `contents.py` fills guards: NaN in a float type, small negative numbers in
    /// an integer type, and different for each storage.
    pub fn canary(self, index: usize) -> [u8; 8] {
        let mark = (index as u64 * 37 + 11) % 61 + 1;
        let element = match (self.is_float(), self.size) {
            (true, 1) => 0xFF - 0x80 * (index as u64 % 2),
            (true, 2) if self.name == "bfloat16" => 0x7FC0 + mark,
            (true, 2) => 0x7E00 + mark,
            (true, 4) => 0x7FC0_0000 + mark,
            (true, _) => (0x7FF8 << 48) + mark,
            (false, size) => (u64::MAX >> (64 - 8 * size)) - mark,
        };
        let mut bytes = [0; 8];
        (0..8).step_by(self.size).for_each(|at| self.write(&mut bytes, at, element));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str) -> ElementType {
        ElementType::of(name).unwrap()
    }

    #[test]
    fn every_pattern_of_bits_survives() {
        for element in ALL.iter().filter(|element| element.size <= 2 && element.kind != ElementKind::Bool) {
            for bits in 0..1_u64 << (8 * element.size) {
                let value = element.decode(bits);
                let again = element.decode(element.encode(value));
                assert!(
                    again == value || (again.is_nan() && value.is_nan()),
                    "{} {bits:x}: {value} {again}",
                    element.name
                );
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_even() {
        for (name, value, bits) in [
            ("float16", 1.0, 0x3C00),
            ("float16", -1.0 - 2.0_f64.powi(-11), 0xBC00),
            ("float16", 1.0 + 3.0 * 2.0_f64.powi(-11), 0x3C02),
            ("float16", 65504.0, 0x7BFF),
            ("float16", 65520.0, 0x7C00),
            ("float16", 1e300, 0x7C00),
            ("float16", f64::NEG_INFINITY, 0xFC00),
            ("float16", 2.0_f64.powi(-24), 1),
            ("float16", 2.0_f64.powi(-25), 0),
            ("float16", 2047.9 * 2.0_f64.powi(-25), 0x400),
            ("bfloat16", 3.0, 0x4040),
            ("bfloat16", f64::from(f32::MAX), 0x7F80),
            ("float8_e4m3fn", 448.0, 0x7E),
            ("float8_e4m3fn", 1e9, 0x7F),
            ("float8_e5m2", 57344.0, 0x7B),
            ("float8_e5m2", 1e9, 0x7C),
            ("int16", -2.0, 0xFFFE),
            ("bool", 0.5, 1),
        ] {
            assert_eq!(element(name).encode(value), bits, "{name} {value}");
        }
        assert!(element("float8_e4m3fn").decode(0xFF).is_nan() && element("bfloat16").decode(0x7FC1).is_nan());
        let limits = |name| (element(name).eps(), element(name).tiny(), element(name).greatest());
        assert_eq!(limits("float16"), (2.0_f64.powi(-10), 2.0_f64.powi(-14), 65504.0));
        assert_eq!(limits("float8_e4m3fn"), (0.125, 2.0_f64.powi(-6), 448.0));
        assert_eq!(limits("float32"), (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)));
        assert_eq!(limits("float64"), (f64::EPSILON, f64::MIN_POSITIVE, f64::MAX));
        assert_eq!((element("int8").integer(0xFE), element("uint8").integer(0xFE)), (-2, 254));
    }

    #[test]
    fn guard_patterns_decode_to_no_ordinary_number() {
        for element in ALL {
            let canary = element.canary(5);
            let value = element.decode(element.read(&canary, 8 - element.size));
            let is_odd =
                value.is_nan() || (value < 0.0 && value > -64.0) || element.name == "uint8" || element.name == "bool";
            assert!(is_odd, "{}: {value}", element.name);
            assert_ne!(canary, element.canary(6));
        }
    }
}
