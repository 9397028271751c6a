//! Trials with other numbers than the recorded ones.

use protocol::runner::Inputs;
use protocol::sizes::CallSizes;
use protocol::{ArgumentValue, Workload, WorkloadSource};

use super::trials::text;

/// The most numbers that are varied alone, counted separately for arguments and for what arguments contain.
const VARIED: usize = 4;
/// The nesting depth beyond which numbers are not varied.
const DEEPEST: usize = 8;

/// A number, or a list of the parts of a size, with its replacement.
struct Other<'a> {
    /// The index of the argument, and the path inside it.
    argument: usize,
    way: Vec<usize>,
    /// The path as text for reports.
    path: String,
    old: &'a ArgumentValue,
    new: ArgumentValue,
}

/// Replacements for numbers that are not sizes: all floats at once; each switch, each integer, and each list of the
/// parts of a size alone, since they may select another branch. Numbers inside arguments are tried separately, since
/// objects reject more values.
pub(super) fn numbers(workload: &Workload) -> Vec<(String, Vec<(usize, ArgumentValue)>)> {
    if !matches!(workload.source, WorkloadSource::Recorded | WorkloadSource::Comment) {
        return Vec::new();
    }
    let plain = Inputs::default();
    let sizes = CallSizes::new(workload, &plain);
    let mut found = Vec::new();
    for (at, value) in workload.values().enumerate() {
        let name = at.checked_sub(workload.args.len()).map(|at| workload.kwargs[at].0.clone());
        let path = name.unwrap_or_else(|| format!("argument {at}"));
        find(value, (at, &mut Vec::new(), path), &sizes, &mut found);
    }
    let (outside, inside): (Vec<_>, Vec<_>) = found.into_iter().partition(|one| one.way.is_empty());
    [outside, inside].into_iter().flat_map(|all| trials(workload, all)).collect()
}

/// The trials of these replacements.
fn trials(workload: &Workload, all: Vec<Other<'_>>) -> Vec<(String, Vec<(usize, ArgumentValue)>)> {
    let (floats, mut alone): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|one| matches!(one.old, ArgumentValue::Float(_)));
    alone.truncate(VARIED);
    let sets = [floats].into_iter().chain(alone.into_iter().map(|one| vec![one])).filter(|set| !set.is_empty());
    let named = sets.map(|set| {
        let word = |one: &Other<'_>| {
            let path = if one.way.is_empty() { String::new() } else { format!("{} ", one.path) };
            format!("{path}{} → {}", text(one.old), text(&one.new))
        };
        let words: Vec<String> = set.iter().map(word).collect();
        let mut others: Vec<(usize, ArgumentValue)> = Vec::new();
        for Other { argument, way, new, .. } in set {
            if others.last().is_none_or(|(of, _)| *of != argument) {
                others.extend(workload.values().nth(argument).map(|value| (argument, value.clone())));
            }
            if let Some((_, value)) = others.last_mut() {
                put(value, &way, new);
            }
        }
        (format!("numbers {}", words.join(", ")), others)
    });
    named.collect()
}

fn find<'a>(
    value: &'a ArgumentValue,
    (argument, way, path): (usize, &mut Vec<usize>, String),
    sizes: &CallSizes<'_>,
    found: &mut Vec<Other<'a>>,
) {
    if let Some(new) = other(value, sizes) {
        found.push(Other { argument, way: way.clone(), path, old: value, new });
        return;
    }
    if way.len() == DEEPEST {
        return;
    }
    let held: Vec<(usize, String, &ArgumentValue)> = match value {
        ArgumentValue::List(items) | ArgumentValue::Tuple(items) | ArgumentValue::NamedTuple { items, .. }
            if !is_ascending(items) =>
        {
            items.iter().enumerate().map(|(at, item)| (at, format!("[{at}]"), item)).collect()
        }
        ArgumentValue::Dict(pairs) => {
            pairs.iter().enumerate().map(|(at, (key, item))| (at, format!("[{}]", text(key)), item)).collect()
        }
        // Private state is consistent in itself and stays as it is.
        ArgumentValue::Object { state, .. } => {
            let public = state.iter().enumerate().filter(|(_, (name, _))| !name.starts_with('_'));
            public.map(|(at, (name, item))| (at, format!(".{name}"), item)).collect()
        }
        _ => Vec::new(),
    };
    for (at, step, item) in held {
        way.push(at);
        find(item, (argument, way, format!("{path}{step}")), sizes, found);
        way.pop();
    }
}

/// The replacement of a value, if it is a number that is not a size.
fn other(value: &ArgumentValue, sizes: &CallSizes<'_>) -> Option<ArgumentValue> {
    match value {
        // Probabilities stay probabilities, and signs stay the same.
        ArgumentValue::Float(old) if old.is_finite() && *old != 0.0 => {
            let new = 0.7 * old + 0.11 * old.signum();
            // Three digits are readable.
            Some(ArgumentValue::Float(format!("{new:.2e}").parse().unwrap_or(new)))
        }
        ArgumentValue::Bool(old) => Some(ArgumentValue::Bool(!old)),
        // Half of a power of two divides whatever the number divides.
        ArgumentValue::Int(old) if *old > 1 && !sizes.is_size(*old) => {
            Some(ArgumentValue::Int(if old.count_ones() == 1 { old / 2 } else { old - 1 }))
        }
        ArgumentValue::List(items) => turned(items, sizes).map(ArgumentValue::List),
        ArgumentValue::Tuple(items) => turned(items, sizes).map(ArgumentValue::Tuple),
        _ => None,
    }
}

fn put(value: &mut ArgumentValue, way: &[usize], new: ArgumentValue) {
    let Some((&at, way)) = way.split_first() else {
        *value = new;
        return;
    };
    let held = match value {
        ArgumentValue::List(items) | ArgumentValue::Tuple(items) | ArgumentValue::NamedTuple { items, .. } => {
            items.get_mut(at)
        }
        ArgumentValue::Dict(pairs) => pairs.get_mut(at).map(|(_, item)| item),
        ArgumentValue::Object { state, .. } => state.get_mut(at).map(|(_, item)| item),
        _ => None,
    };
    if let Some(held) = held {
        put(held, way, new);
    }
}

fn integers(items: &[ArgumentValue]) -> Option<Vec<i64>> {
    items.iter().map(|item| if let ArgumentValue::Int(value) = item { Some(*value) } else { None }).collect()
}

/// Whether integers may be ends of sequences, which cannot be varied independently.
fn is_ascending(items: &[ArgumentValue]) -> bool {
    items.len() > 2 && integers(items).is_some_and(|all| all.is_sorted() && all[0] != all[all.len() - 1])
}

/// Integers that add up to a size, in another order, or shifted between each other where they are equal.
fn turned(items: &[ArgumentValue], sizes: &CallSizes<'_>) -> Option<Vec<ArgumentValue>> {
    let mut numbers = integers(items)?;
    let last = numbers.len().checked_sub(1).filter(|&last| last > 0)?;
    if !sizes.is_size(numbers.iter().sum()) {
        return None;
    }
    if numbers.iter().all(|&number| number == numbers[0]) {
        (numbers[0], numbers[last]) = (numbers[0] - 1, numbers[last] + 1);
    } else {
        numbers.rotate_left(1);
    }
    Some(numbers.into_iter().map(ArgumentValue::Int).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use protocol::{Reference, TensorSpec};

    pub(crate) fn called(args: Vec<ArgumentValue>, kwargs: Vec<(String, ArgumentValue)>) -> Workload {
        let spec = TensorSpec {
            shape: vec![64, 12],
            stride: vec![12, 1],
            dtype: "float32".to_owned(),
            ..TensorSpec::default()
        };
        let args = [ArgumentValue::Tensor(spec)].into_iter().chain(args).collect();
        Workload { source: WorkloadSource::Recorded, args, kwargs, ..Workload::default() }
    }

    fn names(workload: &Workload) -> Vec<String> {
        numbers(workload).into_iter().map(|(name, _)| name).collect()
    }

    fn list(parts: &[i64]) -> ArgumentValue {
        ArgumentValue::List(parts.iter().copied().map(ArgumentValue::Int).collect())
    }

    #[test]
    fn numbers_that_are_not_sizes_are_varied() {
        let given = vec![
            ArgumentValue::Float(1e-5),
            ArgumentValue::Int(64),
            ArgumentValue::Int(768),
            ArgumentValue::Int(8),
            ArgumentValue::Bool(true),
            list(&[40, 24]),
            list(&[6, 6]),
            list(&[0, 3, 5]),
            ArgumentValue::Int(1),
            ArgumentValue::Float(0.0),
        ];
        let expected = [
            "numbers 0.00001 → 0.11",
            "numbers 8 → 4",
            "numbers True → False",
            "numbers [40, 24] → [24, 40]",
            "numbers [6, 6] → [5, 7]",
        ];
        assert_eq!(names(&called(given, Vec::new())), expected);
    }

    #[test]
    fn nested_numbers_are_varied_in_place() {
        let named =
            |all: Vec<(&str, ArgumentValue)>| all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let inner = ArgumentValue::Dict(vec![
            (ArgumentValue::Str("eps".to_owned()), ArgumentValue::Float(1e-5)),
            (ArgumentValue::Int(8), ArgumentValue::Int(8)),
        ]);
        let state = named(vec![
            ("scale", ArgumentValue::Float(3.0)),
            ("_cached", ArgumentValue::Int(9)),
            ("rows", ArgumentValue::Int(64)),
            ("more", inner),
        ]);
        let object = ArgumentValue::Object { class: Reference::default(), state };
        let pair = ArgumentValue::Tuple(vec![ArgumentValue::Float(2.0), ArgumentValue::Bool(false)]);
        let workload = called(vec![object], named(vec![("pair", pair), ("factor", ArgumentValue::Float(1.0))]));
        let expected = [
            "numbers 1 → 0.81",
            "numbers argument 1.scale 3 → 2.21, argument 1.more[\"eps\"] 0.00001 → 0.11, pair[0] 2 → 1.51",
            "numbers argument 1.more[8] 8 → 4",
            "numbers pair[1] False → True",
        ];
        assert_eq!(names(&workload), expected);
        let all = numbers(&workload);
        // The other values, such as the tensors, stay the same.
        let [(1, ArgumentValue::Object { state, .. }), (2, ArgumentValue::Tuple(pair))] = &all[1].1[..] else {
            panic!("{all:?}")
        };
        assert_eq!(
            (&state[0].1, &state[1].1, &state[2].1),
            (&ArgumentValue::Float(2.21), &ArgumentValue::Int(9), &ArgumentValue::Int(64))
        );
        assert_eq!(pair[..], [ArgumentValue::Float(1.51), ArgumentValue::Bool(false)]);
    }
}
