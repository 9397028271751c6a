//! Knobs: the numbers of a kernel's launch (tile sizes and launch options) that can change without changing results.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::kernel::ast::{Expr, argument, has_star};
use model::kernel::{Autotune, Config, Kernel, Launch, Module};
use model::syntax::Span;
use rules::Edit;
use workload::LaunchConstants;

use super::candidate::Change;
use super::grid_tiles::{Tied, is_free, tied};
use super::guard::{Guard, LaunchTile};
use super::launched::{passed_for, unpacked};
use super::rounds::may_loop;
use super::words::is_of_word;
use super::written::literal;

/// Launch options to try: the name, the default on NVIDIA devices, and the choices.
const OPTIONS: [(&str, i64, &[i64]); 2] = [("num_warps", 4, &[1, 2, 4, 8, 16, 32]), (STAGES, 3, &[1, 2, 3, 4, 5, 6])];
const STAGES: &str = "num_stages";
/// The base-2 logarithms of the tile sizes to try. A size of 1 is left out: it is rarely a tile size, and could not be
/// distinguished from constants that are not.
const TILES: std::ops::RangeInclusive<u32> = 1..=14;

/// A number in the source that can be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// The name of the parameter or constant.
    pub name: String,
    /// Its value in the source.
    pub current: i64,
    pub(super) choices: Vec<i64>,
    place: KnobSite,
    /// The condition on sizes under which a greater number is correct, where there is one.
    guard: Option<Guard>,
}

/// Where a knob's number is in the source, or where it would be inserted.
#[derive(Clone, Debug, PartialEq)]
enum KnobSite {
    Literals(Vec<Span>),
    /// The same, and the places of numbers that are one less.
    Tied(Vec<Span>, Vec<Span>),
    /// A keyword argument to be inserted at these offsets.
    Keyword(Vec<usize>),
    /// ` NAME=NUMBER` to be inserted at this offset.
    Word(usize),
    /// Expressions that compute the number; any number may replace them.
    Computed(Vec<Span>),
}

/// One value per knob.
pub(super) type Setting = Vec<i64>;

/// The knobs of `kernel` as launched by the function `entry`, or by any function where `entry` does not launch it.
pub fn knobs(module: &Module, text: &str, kernel: &Kernel, entry: &str) -> Vec<Knob> {
    let mut knobs = all_knobs(module, text, kernel, entry);
    // Pipeline stages matter only in a loop.
    knobs.retain(|knob| knob.name != STAGES || may_loop(module, kernel));
    knobs
}

fn all_knobs(module: &Module, text: &str, kernel: &Kernel, entry: &str) -> Vec<Knob> {
    let of = |launch: &&Launch| launch.host.is_some_and(|host| module.hosts[host].qualname == entry);
    let mut launches: Vec<&Launch> = module.launches_of(&kernel.name).filter(of).collect();
    if launches.is_empty() {
        launches = module.launches_of(&kernel.name).collect();
    }
    if let Some(autotune) = &kernel.autotune {
        return only_config(autotune).map(|only| knobs_of_config(kernel, only)).unwrap_or_default();
    }
    if launches.is_empty() || launches.iter().any(|launch| launch.has_error) {
        return Vec::new();
    }
    let mut knobs: Vec<Knob> = kernel
        .params
        .iter()
        .enumerate()
        .filter(|(_, param)| param.constexpr && !is_option(&param.name))
        .filter_map(|(at, _)| tile_knob(module, text, kernel, &launches, at))
        .collect();
    knobs.extend(OPTIONS.iter().filter_map(|&(name, default, choices)| {
        let given = given_option(module, kernel, &launches, name)?;
        option_knob(module, &launches, &given, name, default, choices)
    }));
    knobs
}

fn is_option(name: &str) -> bool {
    OPTIONS.iter().any(|(option, ..)| *option == name)
}

/// The index of the kernel's own parameter of this name, if it has one: a keyword would pass it twice.
fn takes(kernel: &Kernel, option: &str) -> Option<usize> {
    kernel.params.iter().position(|param| param.name == option)
}

/// The argument of each launch for an option. `None` where the kernel has a parameter of that name and not all launches
/// pass it.
fn given_option<'a>(
    module: &'a Module,
    kernel: &Kernel,
    launches: &[&'a Launch],
    name: &str,
) -> Option<Vec<Option<&'a Expr>>> {
    let at = takes(kernel, name);
    let of = |launch: &&'a Launch| argument(&launch.args, name, at).or_else(|| unpacked_for(module, launch, name));
    let given: Vec<Option<&Expr>> = launches.iter().map(of).collect();
    (at.is_none() || given.iter().all(Option::is_some)).then_some(given)
}

/// The configuration of an autotuner that has only one.
pub(super) fn only_config(autotune: &Autotune) -> Option<&Config> {
    match autotune.configs.as_deref() {
        Some([only]) => Some(only),
        _ => None,
    }
}

/// The knobs of an autotuner's configuration: the numbers in it, and the options that could be added.
pub(super) fn knobs_of_config(kernel: &Kernel, config: &Config) -> Vec<Knob> {
    let number = |value: &Expr| Some((i64::try_from(value.as_int()?).ok()?, value.span));
    let tiles = config.meta.iter().filter(|(name, _)| !is_option(name)).filter_map(|(name, value)| {
        let (current, span) = number(value)?;
        Some(Knob::new(name, current, tiles(current)?, KnobSite::Literals(vec![span])))
    });
    // After the last option, or before the closing parenthesis.
    let end = config.options.iter().map(|(_, value)| value.span.end).max().unwrap_or(config.span.end - 1);
    let options = OPTIONS.iter().filter_map(|&(name, default, choices)| {
        let (current, place) = match config.options.iter().find(|(given, _)| given == name) {
            Some((_, value)) => {
                let (current, span) = number(value)?;
                (current, KnobSite::Literals(vec![span]))
            }
            None if takes(kernel, name).is_some() => return None,
            None => (default, KnobSite::Keyword(vec![end])),
        };
        Some(Knob::new(name, current, choices.to_vec(), place))
    });
    tiles.chain(options).collect()
}

/// The knobs of a launch that a comment describes; their numbers are in the comment.
pub(crate) fn knobs_of_comment(kernel: &Kernel, numbers: &LaunchConstants) -> Vec<Knob> {
    if kernel.autotune.is_some() {
        return Vec::new();
    }
    let given = |name: &str| numbers.given.iter().find(|(known, ..)| known == name);
    let tiles = kernel.params.iter().filter(|param| param.constexpr && !is_option(&param.name)).filter_map(|param| {
        let (name, current, span) = given(&param.name)?;
        let place = KnobSite::Literals(vec![*span]);
        Some(Knob::new(name, *current, tiles(*current)?, place))
    });
    let options = OPTIONS.iter().filter_map(|&(name, default, choices)| {
        let (current, place) = match given(name) {
            Some((_, current, span)) => (*current, KnobSite::Literals(vec![*span])),
            None if takes(kernel, name).is_some() => return None,
            None => (default, KnobSite::Word(numbers.end)),
        };
        Some(Knob::new(name, current, choices.to_vec(), place))
    });
    tiles.chain(options).collect()
}

/// The tile sizes to try in place of `current`. `None` unless it is a power of two: other constants are rarely tile
/// sizes, and `tl.arange` takes no others.
fn tiles(current: i64) -> Option<Vec<i64>> {
    let is_tile = current >= 2 && current.count_ones() == 1;
    is_tile.then(|| TILES.map(|bits| 1_i64 << bits).collect())
}

/// The knob of a tile size: the number that all launches pass, or the parameter's default where no launch passes any.
fn tile_knob(module: &Module, text: &str, kernel: &Kernel, launches: &[&Launch], at: usize) -> Option<Knob> {
    let param = &kernel.params[at];
    let mut passed: Vec<Option<&Expr>> = Vec::new();
    for launch in launches {
        passed.push(passed_for(kernel, launch, &param.name).or_else(|| unpacked_for(module, launch, &param.name)));
    }
    let literals = if passed.iter().all(Option::is_none) {
        // An unpacked argument (`*x.stride()`) is assumed to have at least one element. A wrong guess only changes a
        // default that is not used.
        let is_reached = launches.iter().any(|launch| {
            let unnamed = launch.args.iter().filter(|arg| arg.keyword.is_none()).count();
            unpacked(module, launch).is_none() || has_star(&launch.args) && at < unnamed
        });
        let default = param.default.as_ref().filter(|_| !is_reached)?;
        vec![(i64::try_from(default.as_int()?).ok()?, default.span)]
    } else {
        let each = launches.iter().zip(passed);
        let found = each.map(|(launch, passed)| {
            let (number, span) = literal(module, launch, passed?)?;
            Some((number, if is_apart(module, kernel, launch, at) { passed?.span } else { span }))
        });
        found.collect::<Option<Vec<_>>>()?
    };
    let current = same(&literals)?;
    let choices = tiles(current)?;
    let mut less = Vec::new();
    let tied = launches.iter().map(|launch| tied(module, kernel, launch, &param.name, current));
    let mut literals = literals;
    for Tied { whole, less: one_less } in tied {
        literals.extend(whole.into_iter().map(|span| (current, span)));
        less.extend(one_less);
    }
    less.sort_unstable();
    less.dedup();
    let place = match place(literals) {
        KnobSite::Literals(spans) if !less.is_empty() => KnobSite::Tied(spans, less),
        place => place,
    };
    let mut knob = Knob::new(&param.name, current, choices, place);
    // With several launches, the tile may divide a different size in each.
    if let [launch] = launches {
        let tile = LaunchTile { kernel, launch, param: &param.name, current };
        knob.guard = Guard::of(module, text, &tile, &knob.spans());
        if let Some((spans, guard)) = Guard::of_global(module, text, &tile).filter(|_| knob.guard.is_none()) {
            (knob.place, knob.guard) = (KnobSite::Literals(spans), Some(guard));
        }
    }
    Some(knob)
}

/// Whether a tile size is changed where it is passed, because another parameter gets the same variable:
/// `BLOCK_M=BLOCK, BLOCK_N=BLOCK`. The variable stays with the parameter that the grid depends on, or else with the
/// first.
fn is_apart(module: &Module, kernel: &Kernel, launch: &Launch, at: usize) -> bool {
    let name = |at: usize| passed_for(kernel, launch, &kernel.params[at].name).and_then(Expr::as_name);
    let is_free = |at: usize| is_free(module, kernel, &kernel.params[at].name);
    let mut others = (0..kernel.params.len()).filter(|&other| other != at && kernel.params[other].constexpr);
    name(at).is_some() && is_free(at) && others.any(|other| name(other) == name(at) && (other < at || !is_free(other)))
}

/// The value that a launch passes for a name by unpacking a dictionary.
fn unpacked_for<'a>(module: &'a Module, launch: &'a Launch, name: &str) -> Option<&'a Expr> {
    unpacked(module, launch)?.into_iter().find(|(given, _)| *given == name).map(|(_, value)| value)
}

fn option_knob(
    module: &Module,
    launches: &[&Launch],
    given: &[Option<&Expr>],
    name: &str,
    default: i64,
    choices: &[i64],
) -> Option<Knob> {
    let knob = |current, place| Knob::new(name, current, choices.to_vec(), place);
    if given.iter().all(Option::is_none) {
        let open = launches.iter().any(|launch| unpacked(module, launch).is_none());
        let ends: Option<Vec<usize>> = launches.iter().map(|launch| Some(launch.args.last()?.span.end)).collect();
        return (!open).then_some(knob(default, KnobSite::Keyword(ends?)));
    }
    let given: Vec<&Expr> = given.iter().copied().collect::<Option<_>>()?;
    let literals: Option<Vec<_>> =
        launches.iter().zip(&given).map(|(launch, expr)| literal(module, launch, expr)).collect();
    if let Some(literals) = literals
        && let Some(current) = same(&literals)
    {
        return Some(knob(current, place(literals)));
    }
    Some(knob(default, KnobSite::Computed(given.iter().map(|expr| expr.span).collect())))
}

fn same(literals: &[(i64, Span)]) -> Option<i64> {
    let first = literals.first()?.0;
    literals.iter().all(|(value, _)| *value == first).then_some(first)
}

fn place(literals: Vec<(i64, Span)>) -> KnobSite {
    let mut spans: Vec<Span> = literals.into_iter().map(|(_, span)| span).collect();
    spans.sort_unstable();
    spans.dedup();
    KnobSite::Literals(spans)
}

/// The edits that change the source from its current numbers to `setting`.
pub(super) fn edits(knobs: &[Knob], setting: &Setting) -> Vec<Edit> {
    let changed = knobs.iter().zip(setting).filter(|(knob, value)| knob.current != **value);
    let mut before: BTreeMap<Span, String> = BTreeMap::new();
    let texts = changed.map(|(knob, value)| {
        let Some(guard) = &knob.guard else { return (knob, value.to_string()) };
        let (text, named) = guard.written(*value);
        // Several tiles may be named at the same place.
        named.into_iter().for_each(|edit| before.entry(edit.span).or_default().push_str(&edit.text));
        (knob, text)
    });
    let mut edits = write(texts);
    edits.extend(before.into_iter().map(|(span, text)| Edit { span, text }));
    edits.sort_by_key(|edit| edit.span);
    edits
}

/// The edits that write texts in place of the knobs' numbers, or insert them where a knob has none yet.
pub(super) fn write<'a>(texts: impl Iterator<Item = (&'a Knob, String)>) -> Vec<Edit> {
    let mut edits: BTreeMap<Span, String> = BTreeMap::new();
    for (knob, written) in texts {
        match &knob.place {
            KnobSite::Literals(spans) | KnobSite::Computed(spans) => {
                edits.extend(spans.iter().map(|&span| (span, written.clone())));
            }
            KnobSite::Tied(spans, less) => {
                edits.extend(spans.iter().map(|&span| (span, written.clone())));
                let one_less = match written.parse::<i64>() {
                    Ok(number) => (number - 1).to_string(),
                    Err(_) if written.chars().all(is_of_word) => format!("{written} - 1"),
                    Err(_) => format!("({written}) - 1"),
                };
                edits.extend(less.iter().map(|&span| (span, one_less.clone())));
            }
            KnobSite::Word(end) => {
                let text = edits.entry(Span::new(*end, *end)).or_default();
                text.push_str(&format!(" {}={written}", knob.name));
            }
            KnobSite::Keyword(ends) => {
                for &end in ends {
                    // Several keywords may be inserted at the same place.
                    edits.entry(Span::new(end, end)).or_default().push_str(&format!(", {}={written}", knob.name));
                }
            }
        }
    }
    edits.into_iter().map(|(span, text)| Edit { span, text }).collect()
}

/// The changes that a setting makes, without the knobs that keep their values.
pub(super) fn changes(knobs: &[Knob], setting: &Setting) -> Vec<Change> {
    let changed = knobs.iter().zip(setting).filter(|(knob, value)| knob.current != **value);
    let change = |(knob, &to): (&Knob, &i64)| match knob.place {
        KnobSite::Computed(_) => Change::Chosen { name: knob.name.clone(), to },
        _ => Change::Number { name: knob.name.clone(), from: knob.current, to },
    };
    changed.map(change).collect()
}

impl Knob {
    fn new(name: &str, current: i64, choices: Vec<i64>, place: KnobSite) -> Self {
        Self { name: name.to_owned(), current, choices, place, guard: None }
    }

    /// Raises the guard's fallback to the number in the user's file, which is correct for all sizes.
    pub(super) fn began_with(&mut self, changes: &[Change]) {
        let of_it = changes.iter().find_map(|change| match change {
            Change::Number { name, from, to } if *name == self.name && *to == self.current => Some(*from),
            _ => None,
        });
        if let (Some(guard), Some(from)) = (&mut self.guard, of_it) {
            guard.is_right_up_to(from);
        }
    }

    /// Whether the knob is a launch option rather than a parameter of the kernel.
    pub(super) fn is_option(&self) -> bool {
        is_option(&self.name)
    }

    /// The spans of the number in the source; empty spans where it would be inserted.
    pub(super) fn spans(&self) -> Vec<Span> {
        match &self.place {
            KnobSite::Literals(spans) | KnobSite::Computed(spans) => spans.clone(),
            KnobSite::Tied(spans, less) => spans.iter().chain(less).copied().collect(),
            KnobSite::Keyword(ends) => ends.iter().map(|&end| Span::new(end, end)).collect(),
            KnobSite::Word(end) => vec![Span::new(*end, *end)],
        }
    }

    /// The kernel's expression for the host's number at a place, where that number is this knob's: `BLOCK`, or
    /// `BLOCK - 1`.
    pub(super) fn in_kernel(&self, at: Span) -> Option<String> {
        match &self.place {
            KnobSite::Tied(_, less) if less.contains(&at) => Some(format!("{} - 1", self.name)),
            KnobSite::Literals(spans) | KnobSite::Tied(spans, _) => spans.contains(&at).then(|| self.name.clone()),
            _ => None,
        }
    }

    /// The text of the number in the source: a literal, or the expression that computes it. `None` where the text
    /// differs from place to place.
    pub(super) fn written<'a>(&self, text: &'a str) -> Option<Cow<'a, str>> {
        match &self.place {
            KnobSite::Computed(spans) => {
                let mut texts = spans.iter().map(|span| text.get(span.start..span.end));
                let first = texts.next()??;
                texts.all(|other| other == Some(first)).then_some(Cow::Borrowed(first))
            }
            // The result would be a choice within another choice.
            _ if self.guard.as_ref().is_some_and(|guard| guard.is_chosen(self.current)) => None,
            _ => Some(Cow::Owned(self.current.to_string())),
        }
    }

    /// Whether this number is among the knob's choices.
    pub fn takes(&self, number: i64) -> bool {
        self.choices.contains(&number)
    }

    /// The choice `distance` steps away from the current number; `None` outside of the choices.
    pub(super) fn step(&self, distance: isize) -> Option<i64> {
        let at = self.choices.iter().position(|&choice| choice >= self.current).unwrap_or(self.choices.len());
        self.choices.get(at.checked_add_signed(distance)?).copied()
    }
}

#[cfg(test)]
mod tests;
