//! Evaluation of operations on integers, addresses and booleans. Floats are not evaluated.

use super::simulated_value::SimulatedValue;
use super::simulation::ProgramPosition;
use super::ttir::{Op, ScalarKind};

/// The value of an operation's result; `None` where it is unknown or irrelevant.
pub(super) fn value(op: &Op, operands: &[&SimulatedValue], place: &ProgramPosition) -> Option<SimulatedValue> {
    let of = op.types.first()?;
    let first = operands.first();
    match op.name.as_str() {
        "arith.constant" => constant(&op.text, of.kind, &of.shape),
        "tt.get_program_id" => Some(SimulatedValue::scalar(place.program[axis(&op.text)])),
        "tt.get_num_programs" => Some(SimulatedValue::scalar(place.grid[axis(&op.text)])),
        "tt.make_range" => {
            let (start, end) = (number_after(&op.text, "start = ")?, number_after(&op.text, "end = ")?);
            Some(SimulatedValue::of(of.shape.clone(), (start..end).collect()))
        }
        "tt.splat" => Some(first?.splat(&of.shape)),
        "tt.expand_dims" | "tt.reshape" => Some(first?.reshape(&of.shape)),
        "tt.broadcast" => Some(first?.broadcast(&of.shape)),
        "tt.trans" => Some(first?.transpose(&order(&op.text)?)),
        "tt.addptr" => {
            let bytes = i64::from(of.bits.div_ceil(8));
            Some(operands.first()?.with(operands.get(1)?, |address, offset| address + offset * bytes))
        }
        "tt.make_tensor_descriptor" => Some((*first?).clone()),
        // Loaded integers are assumed to be 0, for example an index to the first row.
        "tt.load" if of.kind != ScalarKind::Float => Some(SimulatedValue::scalar(0).splat(&of.shape)),
        "arith.select" => selected(operands),
        "arith.cmpi" => compared(&op.text, operands),
        name if of.kind != ScalarKind::Float => integer(name, operands),
        _ => None,
    }
}

fn integer(name: &str, operands: &[&SimulatedValue]) -> Option<SimulatedValue> {
    if let ["arith.extsi" | "arith.extui" | "arith.trunci" | "arith.index_cast" | "arith.index_castui", ..] = [name] {
        return Some((*operands.first()?).clone());
    }
    let (one, two) = (operands.first()?, operands.get(1)?);
    let make: fn(i64, i64) -> i64 = match name.strip_prefix("arith.")? {
        "addi" => i64::wrapping_add,
        "subi" => i64::wrapping_sub,
        "muli" => i64::wrapping_mul,
        "divsi" | "divui" => |a, b| a.checked_div(b).unwrap_or(0),
        "remsi" | "remui" => |a, b| a.checked_rem(b).unwrap_or(0),
        "floordivsi" => |a, b| a.checked_div_euclid(b).unwrap_or(0),
        "ceildivsi" | "ceildivui" => |a, b| if b == 0 { 0 } else { -(-a).div_euclid(b) },
        "minsi" | "minui" => i64::min,
        "maxsi" | "maxui" => i64::max,
        "andi" => |a, b| a & b,
        "ori" => |a, b| a | b,
        "xori" => |a, b| a ^ b,
        "shli" => |a, b| a << (b & 63),
        "shrsi" | "shrui" => |a, b| a >> (b & 63),
        _ => return None,
    };
    Some(one.with(two, make))
}

fn compared(text: &str, operands: &[&SimulatedValue]) -> Option<SimulatedValue> {
    let (one, two) = (operands.first()?, operands.get(1)?);
    let holds: fn(i64, i64) -> bool = match text.trim().split(',').next()? {
        "eq" => |a, b| a == b,
        "ne" => |a, b| a != b,
        "slt" | "ult" => |a, b| a < b,
        "sle" | "ule" => |a, b| a <= b,
        "sgt" | "ugt" => |a, b| a > b,
        "sge" | "uge" => |a, b| a >= b,
        _ => return None,
    };
    Some(one.with(two, |a, b| i64::from(holds(a, b))))
}

fn selected(operands: &[&SimulatedValue]) -> Option<SimulatedValue> {
    let [condition, yes, no] = operands else { return None };
    let (Some(condition), Some(yes_all), Some(no_all)) = (&condition.elements, &yes.elements, &no.elements) else {
        return Some(SimulatedValue::unknown(&yes.shape));
    };
    let at = |at: usize| if condition.get(at).or(condition.first()) == Some(&1) { yes_all[at] } else { no_all[at] };
    let count = yes_all.len().min(no_all.len());
    Some(SimulatedValue::of(yes.shape.clone(), (0..count).map(at).collect()))
}

/// Parses a constant: `512 : i32`, `true`, `dense<0> : tensor<512xi32>`.
fn constant(text: &str, kind: ScalarKind, shape: &[usize]) -> Option<SimulatedValue> {
    let said = text.trim();
    let said = said.strip_prefix("dense<").map_or(said, |rest| rest.split('>').next().unwrap_or_default());
    let value = match said.split(' ').next()? {
        "true" => 1,
        "false" => 0,
        number if kind == ScalarKind::Int => number.parse().ok()?,
        _ => return None,
    };
    Some(SimulatedValue::scalar(value).splat(shape))
}

fn axis(text: &str) -> usize {
    match text.trim().chars().next() {
        Some('y') => 1,
        Some('z') => 2,
        _ => 0,
    }
}

fn number_after(text: &str, name: &str) -> Option<i64> {
    let rest = &text[text.find(name)? + name.len()..];
    rest[..rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len())].parse().ok()
}

/// Parses the attribute `{order = array<i32: 1, 0>}`.
fn order(text: &str) -> Option<Vec<usize>> {
    let (_, rest) = text.split_once("array<i32: ")?;
    rest.split('>').next()?.split(',').map(|one| one.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ttir::Type;

    const PLACE: ProgramPosition = ProgramPosition { program: [3, 4, 5], grid: [30, 40, 50] };

    fn made(name: &str, text: &str, kind: ScalarKind, operands: &[SimulatedValue]) -> Option<SimulatedValue> {
        let shape = operands.first().map(|tile| tile.shape.clone()).unwrap_or_default();
        let of = Type { shape, kind, bits: 32 };
        let op = Op { name: name.to_owned(), text: text.to_owned(), types: vec![of], ..Op::default() };
        value(&op, &operands.iter().collect::<Vec<_>>(), &PLACE)
    }

    #[test]
    fn integer_operations_are_evaluated() {
        let row = |of: &[i64]| SimulatedValue::of(vec![of.len()], of.to_vec());
        let both = [row(&[-7, 7]), row(&[2, 2])];
        let of = |name: &str| made(name, "", ScalarKind::Int, &both).unwrap().elements.unwrap().to_vec();
        assert_eq!(
            (of("arith.divsi"), of("arith.remsi"), of("arith.ceildivsi")),
            (vec![-3, 3], vec![-1, 1], vec![-3, 4])
        );
        assert_eq!((of("arith.minsi"), of("arith.shli")), (vec![-7, 2], vec![-28, 28]));
        assert_eq!(made("arith.cmpi", " slt, %a, %b", ScalarKind::Int, &both), Some(row(&[1, 0])));
        assert_eq!(made("tt.addptr", "", ScalarKind::Pointer, &both), Some(row(&[1, 15])));
        assert_eq!(made("arith.addf", "", ScalarKind::Float, &both), None);
    }

    #[test]
    fn program_indices_and_constants_are_evaluated() {
        assert_eq!(made("tt.get_program_id", " y : i32", ScalarKind::Int, &[]), Some(SimulatedValue::scalar(4)));
        assert_eq!(made("tt.get_num_programs", " z : i32", ScalarKind::Int, &[]), Some(SimulatedValue::scalar(50)));
        assert_eq!(made("arith.constant", " true", ScalarKind::Other, &[]), Some(SimulatedValue::scalar(1)));
        assert_eq!(
            constant(" dense<-5> : tensor<2xi32>", ScalarKind::Int, &[2]),
            Some(SimulatedValue::of(vec![2], vec![-5, -5]))
        );
        assert_eq!(order(" %x {order = array<i32: 1, 0>} : a -> b"), Some(vec![1, 0]));
        assert_eq!(number_after(" {end = 512 : i32, start = 0 : i32} : tensor<512xi32>", "end = "), Some(512));
    }
}
