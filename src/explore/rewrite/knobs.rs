//! What of a kernel's launch can be turned without changing what it computes: tile sizes and launch options.

use std::collections::BTreeMap;

use crate::explore::candidate::Change;
use crate::kernel::ast::{Expr, Stmt, StmtKind, argument, has_star, walk_statements};
use crate::kernel::{Host, Kernel, Launch, Module};
use crate::rules::Edit;
use crate::syntax::Span;
use crate::workload::Numbers;

/// Launch options that are tried, with their default on NVIDIA devices.
const OPTIONS: [(&str, i64, &[i64]); 2] = [("num_warps", 4, &[1, 2, 4, 8, 16]), ("num_stages", 3, &[1, 2, 3, 4, 5, 6])];
/// Tile sizes that are tried: so many bits below each. A one is rarely a tile size, and could not be told from what is none.
const TILES: std::ops::RangeInclusive<u32> = 1..=14;

/// A number in the source that can be turned.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::explore) struct Knob {
    pub(in crate::explore) name: String,
    pub(in crate::explore) current: i64,
    pub(super) choices: Vec<i64>,
    place: Place,
}

/// Where a knob's number stands, or would stand.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Literals(Vec<Span>),
    /// A keyword to be added at these places.
    Keyword(Vec<usize>),
    /// ` NAME=NUMBER` to be added there.
    Word(usize),
}

/// One value per knob.
pub(super) type Setting = Vec<i64>;

/// The knobs of `kernel` as launched from the function `entry`, or from anywhere when it launches nothing itself.
pub(in crate::explore) fn knobs(module: &Module, kernel: &Kernel, entry: &str) -> Vec<Knob> {
    let of = |launch: &&Launch| launch.host.is_some_and(|host| module.hosts[host].qualname == entry);
    let mut launches: Vec<&Launch> = module.launches_of(&kernel.name).filter(of).collect();
    if launches.is_empty() {
        launches = module.launches_of(&kernel.name).collect();
    }
    if kernel.autotune.is_some() || launches.is_empty() || launches.iter().any(|launch| launch.has_error) {
        return Vec::new();
    }
    let mut knobs: Vec<Knob> = kernel
        .params
        .iter()
        .enumerate()
        .filter(|(_, param)| param.constexpr)
        .filter_map(|(at, param)| tile_knob(module, &launches, &param.name, at))
        .collect();
    knobs.extend(
        OPTIONS.iter().filter_map(|&(name, default, choices)| option_knob(module, &launches, name, default, choices)),
    );
    knobs
}

/// The knobs of a launch that a comment describes: they stand in the comment.
pub(in crate::explore) fn knobs_of_comment(kernel: &Kernel, numbers: &Numbers) -> Vec<Knob> {
    if kernel.autotune.is_some() {
        return Vec::new();
    }
    let given = |name: &str| numbers.given.iter().find(|(known, ..)| known == name);
    let tiles = kernel.params.iter().filter(|param| param.constexpr).filter_map(|param| {
        let (name, current, span) = given(&param.name)?;
        let place = Place::Literals(vec![*span]);
        Some(Knob { name: name.clone(), current: *current, choices: tiles(*current)?, place })
    });
    let options = OPTIONS.iter().map(|&(name, default, choices)| {
        let place = given(name).map_or(Place::Word(numbers.end), |(_, _, span)| Place::Literals(vec![*span]));
        let current = given(name).map_or(default, |(_, current, _)| *current);
        Knob { name: name.to_owned(), current, choices: choices.to_vec(), place }
    });
    tiles.chain(options).collect()
}

/// Powers of two only: other constants are rarely tile sizes, and `arange` takes no others.
fn tiles(current: i64) -> Option<Vec<i64>> {
    let is_tile = current >= 2 && current.count_ones() == 1;
    is_tile.then(|| TILES.map(|bits| 1_i64 << bits).collect())
}

fn tile_knob(module: &Module, launches: &[&Launch], name: &str, position: usize) -> Option<Knob> {
    let literals = launches
        .iter()
        .map(|launch| literal(module, launch, argument(&launch.args, name, Some(position))?))
        .collect::<Option<Vec<_>>>()?;
    let current = same(&literals)?;
    Some(Knob { name: name.to_owned(), current, choices: tiles(current)?, place: place(literals) })
}

fn option_knob(module: &Module, launches: &[&Launch], name: &str, default: i64, choices: &[i64]) -> Option<Knob> {
    let given: Vec<Option<&Expr>> = launches.iter().map(|launch| argument(&launch.args, name, None)).collect();
    let knob = |current, place| Knob { name: name.to_owned(), current, choices: choices.to_vec(), place };
    if given.iter().all(Option::is_none) {
        let open = launches.iter().any(|launch| has_star(&launch.args));
        let ends: Option<Vec<usize>> = launches.iter().map(|launch| Some(launch.args.last()?.span.end)).collect();
        return (!open).then_some(knob(default, Place::Keyword(ends?)));
    }
    let literals =
        launches.iter().zip(given).map(|(launch, expr)| literal(module, launch, expr?)).collect::<Option<Vec<_>>>()?;
    Some(knob(same(&literals)?, place(literals)))
}

fn same(literals: &[(i64, Span)]) -> Option<i64> {
    let first = literals.first()?.0;
    literals.iter().all(|(value, _)| *value == first).then_some(first)
}

fn place(literals: Vec<(i64, Span)>) -> Place {
    let mut spans: Vec<Span> = literals.into_iter().map(|(_, span)| span).collect();
    spans.sort_unstable();
    spans.dedup();
    Place::Literals(spans)
}

/// The literal behind an argument: itself, or the only assignment to its name in the function, else in the file.
fn literal(module: &Module, launch: &Launch, expr: &Expr) -> Option<(i64, Span)> {
    if let Some(value) = expr.as_int() {
        return Some((i64::try_from(value).ok()?, expr.span));
    }
    let name = expr.as_name()?;
    let host = launch.host.map(|host| &module.hosts[host]);
    if let Some(host) = host
        && binds(host, name)
    {
        return only_assignment(&host.body, name);
    }
    let mut globals = module.globals.iter().filter(|global| global.name == name);
    let global = globals.next().filter(|_| !module.uncertain.contains(name))?;
    Some((i64::try_from(global.value.as_int()?).ok()?, global.value.span))
}

fn binds(host: &Host, name: &str) -> bool {
    let mut bound = host.params.iter().any(|param| param == name);
    walk_statements(&host.body, &mut |stmt| {
        for target in targets(stmt) {
            target.walk(&mut |expr| bound |= expr.as_name() == Some(name));
        }
    });
    bound
}

fn targets(stmt: &Stmt) -> Vec<&Expr> {
    match &stmt.kind {
        StmtKind::Assign { targets, .. } => targets.iter().collect(),
        StmtKind::AugAssign { target, .. } | StmtKind::For { target, .. } => vec![target],
        _ => Vec::new(),
    }
}

fn only_assignment(body: &[Stmt], name: &str) -> Option<(i64, Span)> {
    let mut found = Vec::new();
    walk_statements(body, &mut |stmt| {
        for target in targets(stmt) {
            let mut hit = false;
            target.walk(&mut |expr| hit |= expr.as_name() == Some(name));
            if hit {
                found.push(stmt);
            }
        }
    });
    match found.as_slice() {
        [Stmt { kind: StmtKind::Assign { targets, value: Some(value), .. }, .. }]
            if targets.len() == 1 && targets[0].as_name() == Some(name) =>
        {
            Some((i64::try_from(value.as_int()?).ok()?, value.span))
        }
        _ => None,
    }
}

/// The edits that bring the source from its present numbers to `setting`.
pub(super) fn edits(knobs: &[Knob], setting: &Setting) -> Vec<Edit> {
    let mut edits: BTreeMap<Span, String> = BTreeMap::new();
    for (knob, &value) in knobs.iter().zip(setting).filter(|(knob, value)| knob.current != **value) {
        match &knob.place {
            Place::Literals(spans) => edits.extend(spans.iter().map(|&span| (span, value.to_string()))),
            Place::Word(end) => {
                let text = edits.entry(Span::new(*end, *end)).or_default();
                text.push_str(&format!(" {}={value}", knob.name));
            }
            Place::Keyword(ends) => {
                for &end in ends {
                    // Several keywords may go to one place.
                    edits.entry(Span::new(end, end)).or_default().push_str(&format!(", {}={value}", knob.name));
                }
            }
        }
    }
    edits.into_iter().map(|(span, text)| Edit { span, text }).collect()
}

/// What a setting changes.
pub(super) fn changes(knobs: &[Knob], setting: &Setting) -> Vec<Change> {
    let changed = knobs.iter().zip(setting).filter(|(knob, value)| knob.current != **value);
    changed.map(|(knob, &to)| Change::Number { name: knob.name.clone(), from: knob.current, to }).collect()
}

impl Knob {
    /// Whether it is an option of the launch, not a number that the kernel takes.
    pub(super) fn is_option(&self) -> bool {
        OPTIONS.iter().any(|(name, ..)| *name == self.name)
    }

    /// The choice so many steps away from the present one.
    pub(super) fn step(&self, distance: isize) -> Option<i64> {
        let at = self.choices.iter().position(|&choice| choice >= self.current)?;
        self.choices.get(at.checked_add_signed(distance)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::rules::apply_edits;
    use crate::syntax::Source;
    use crate::workload::{launch_of_candidate, numbers_of_comment, workloads_of_comments};

    fn turned(text: &str, values: &[(&str, i64)]) -> (Vec<String>, String) {
        let module = Module::build(&Source::parse(text));
        let knobs = knobs(&module, &module.kernels[0], "run");
        let value =
            |knob: &Knob| values.iter().find(|(name, _)| *name == knob.name).map_or(knob.current, |(_, value)| *value);
        let setting = knobs.iter().map(value).collect();
        (
            knobs.iter().map(|knob| format!("{}={}", knob.name, knob.current)).collect(),
            apply_edits(text, &edits(&knobs, &setting)),
        )
    }

    const HEAD: &str = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, n, B: tl.constexpr, H: tl.constexpr):\n    pass\n";

    #[test]
    fn literals_and_missing_options_are_turned_in_place() {
        let text = format!("{HEAD}def run(x):\n    k[(1,)](\n        x, 7, 64, H=80,\n    )\n");
        let (knobs, new) = turned(&text, &[("B", 128), ("num_warps", 8), ("num_stages", 2)]);
        assert_eq!(knobs, ["B=64", "num_warps=4", "num_stages=3"]);
        assert!(new.ends_with("        x, 7, 128, H=80, num_warps=8, num_stages=2,\n    )\n"), "{new}");
    }

    #[test]
    fn numbers_of_a_comment_are_turned_there() {
        let comment = "# warpsmith: workload entry=k[1] x=f16[8] n=8 B=64 H=80 num_warps=2";
        let text = format!("{HEAD}{comment}\ndef run(x):\n    k[(1,)](x, 7, 32, 80)\n");
        let module = Module::build(&Source::parse(text.as_str()));
        let workload = workloads_of_comments(Path::new("/f.py"), &text).unwrap().remove(0);
        let knobs = knobs_of_comment(&module.kernels[0], &numbers_of_comment(&text, &workload).unwrap());
        let shown: Vec<String> = knobs.iter().map(|knob| format!("{}={}", knob.name, knob.current)).collect();
        assert_eq!(shown, ["B=64", "num_warps=2", "num_stages=3"]);
        let new = apply_edits(&text, &edits(&knobs, &vec![128, 8, 1]));
        assert_eq!(new, text.replace("B=64", "B=128").replace("num_warps=2", "num_warps=8 num_stages=1"));
        // What is turned is what a candidate is launched with.
        let own = launch_of_candidate(&workload, &text, &new);
        assert_eq!(own.kwargs.last(), Some(&("num_stages".to_owned(), crate::protocol::Value::Int(1))));
    }

    #[test]
    fn names_are_followed_to_their_only_assignment() {
        let text = format!("{HEAD}B = 32\ndef run(x, H):\n    W = 2\n    k[(1,)](x, 7, B, H, num_warps=W)\n");
        let (knobs, new) = turned(&text, &[("B", 64), ("num_warps", 4)]);
        assert_eq!(knobs, ["B=32", "num_warps=2", "num_stages=3"]);
        assert!(new.contains("\nB = 64\n") && new.contains("W = 4\n"), "{new}");
    }

    #[test]
    fn what_is_computed_or_bound_twice_is_left_alone() {
        let text = format!(
            "{HEAD}def run(x):\n    B = 32\n    B = 64\n    k[(1,)](x, 7, B, f(x), num_warps=g(x), num_stages=2)\n"
        );
        assert_eq!(turned(&text, &[]).0, ["num_stages=2"]);
        let tuned = HEAD.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit");
        assert!(turned(&format!("{tuned}def run(x):\n    k[(1,)](x, 7, 64, 4)\n"), &[]).0.is_empty());
    }
}
