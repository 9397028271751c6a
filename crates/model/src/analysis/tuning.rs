//! The effect of `@triton.autotune` and `@triton.heuristics` on a kernel, as far as the file determines it.

use std::collections::{BTreeMap, BTreeSet};

use super::constants::integer;
use super::launches::global;
use crate::kernel::ast::{Call, Expr, ExprKind};
use crate::kernel::{Decorator, Kernel, Module};
use crate::syntax::Span;

/// Lists of configurations that refer to each other deeper than this are not followed.
const DEEP: usize = 8;

/// The largest number of configurations that is counted.
const MANY: i128 = 1 << 20;

/// The largest number of configurations that are enumerated.
const MAX_ASSIGNMENTS: usize = 512;

/// `@triton.autotune` of one kernel.
#[derive(Clone, Debug)]
pub struct Tuner<'a> {
    module: &'a Module,
    /// The call of `triton.autotune`.
    pub call: &'a Call,
    /// Its index among the decorators of the kernel; the outermost is 0.
    pub place: usize,
    /// The calls of `triton.Config` that make its configurations.
    pub configs: Vec<Template<'a>>,
    /// A lower bound of the number of configurations.
    pub at_least: usize,
    /// Whether [`Tuner::configs`] lists all configurations.
    pub complete: bool,
}

/// A call of `triton.Config`; a comprehension may evaluate it many times.
#[derive(Clone, Debug)]
pub struct Template<'a> {
    /// The call.
    pub call: &'a Call,
    /// Span of the call.
    pub span: Span,
    /// The `for` clauses around it: targets with their iterables.
    pub clauses: Vec<&'a (Expr, Expr)>,
    /// Whether it is evaluated unconditionally.
    pub is_sure: bool,
}

/// The clauses and conditions around a list of configurations.
#[derive(Clone, Debug, Default)]
struct Around<'a> {
    clauses: Vec<&'a (Expr, Expr)>,
    is_conditional: bool,
}

/// The content of an argument that is a list of names.
#[derive(Clone, Debug, PartialEq)]
pub enum NameList<'a> {
    /// The argument is absent or `None`.
    Absent,
    /// These names, each with the span of its string.
    Listed(Vec<(&'a str, Span)>),
    /// The list is not a literal.
    Unknown,
}

/// Whether all numbers that the configurations in a file give a parameter are `number`, as far as they are written as `"NAME": 1`.
/// Lists that are made in loops are read like this, too.
#[must_use]
pub fn is_always(text: &str, name: &str, number: i128) -> bool {
    let mut values = ['"', '\''].into_iter().flat_map(|quote| {
        let key = format!("{quote}{name}{quote}");
        let after: Vec<&str> = text.match_indices(&key).map(|(at, _)| &text[at + key.len()..]).collect();
        after.into_iter().filter_map(|rest| {
            let rest = rest.trim_start().strip_prefix(':')?.trim_start();
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<i128>().ok()
        })
    });
    values.next() == Some(number) && values.all(|value| value == number)
}

/// The last part of the full name of one of Triton's own decorators.
#[must_use]
pub fn kind(decorator: &Decorator) -> Option<&str> {
    decorator.path.as_deref()?.rsplit('.').next()
}

impl<'a> Tuner<'a> {
    /// The tuner of `kernel`, when it has exactly one.
    #[must_use]
    pub fn of(module: &'a Module, kernel: &'a Kernel) -> Option<Self> {
        let mut tuners = kernel.decorators.iter().enumerate().filter(|(_, it)| kind(it) == Some("autotune"));
        let (place, decorator) = tuners.next()?;
        let call = decorator.expr.as_call().filter(|_| tuners.next().is_none())?;
        let mut tuner = Self { module, call, place, configs: Vec::new(), at_least: 0, complete: true };
        match call.argument("configs", Some(0)) {
            Some(list) => tuner.at_least = tuner.collect(list, &Around::default(), 0),
            None => tuner.complete = false,
        }
        Some(tuner)
    }

    /// Adds the configurations of a list. Returns a lower bound of their number.
    fn collect(&mut self, list: &'a Expr, around: &Around<'a>, depth: usize) -> usize {
        let module = self.module;
        let source = match &list.kind {
            _ if depth > DEEP => None,
            ExprKind::List(items) | ExprKind::Tuple(items) => {
                return items.iter().map(|item| self.item(item, around, depth)).fold(0, usize::saturating_add);
            }
            ExprKind::Comprehension { element, clauses: more, filtered, .. } => {
                let clauses = around.clauses.iter().copied().chain(more).collect();
                let around = Around { clauses, is_conditional: around.is_conditional || *filtered };
                let times =
                    more.iter().fold(1, |times: usize, (_, iter)| times.saturating_mul(length(module, iter, 0)));
                return self.item(element, &around, depth).saturating_mul(if *filtered { 0 } else { times });
            }
            ExprKind::Binary { op, left, right } if op == "+" => {
                let count = self.collect(left, around, depth + 1);
                return count.saturating_add(self.collect(right, around, depth + 1));
            }
            ExprKind::IfExp { body, orelse, .. } => {
                let around = Around { is_conditional: true, ..around.clone() };
                return self.collect(body, &around, depth + 1).min(self.collect(orelse, &around, depth + 1));
            }
            ExprKind::Name(name) => global(module, name),
            ExprKind::Call(call) => {
                call.func.as_name().and_then(|name| module.function(name)).and_then(|function| function.result.as_ref())
            }
            _ => None,
        };
        match source {
            Some(source) => self.collect(source, around, depth + 1),
            None => {
                self.complete = false;
                0
            }
        }
    }

    fn item(&mut self, item: &'a Expr, around: &Around<'a>, depth: usize) -> usize {
        if let ExprKind::Starred(list) = &item.kind {
            return self.collect(list, around, depth + 1);
        }
        let is_config =
            |call: &&Call| self.module.imports.resolve(&call.func).is_some_and(|found| found.path.ends_with(".Config"));
        match item.as_call().filter(is_config) {
            Some(call) => {
                let (clauses, is_sure) = (around.clauses.clone(), !around.is_conditional);
                self.configs.push(Template { call, span: item.span, clauses, is_sure });
            }
            None => self.complete = false,
        }
        1
    }

    /// The names in an argument such as `key` or `restore_value`.
    #[must_use]
    pub fn names(&self, argument: &str) -> NameList<'a> {
        const ORDER: [&str; 7] =
            ["configs", "key", "prune_configs_by", "reset_to_zero", "restore_value", "pre_hook", "post_hook"];
        let Some(value) = self.call.argument(argument, ORDER.iter().position(|name| *name == argument)) else {
            return NameList::Absent;
        };
        match &value.kind {
            ExprKind::None => NameList::Absent,
            ExprKind::List(items) | ExprKind::Tuple(items) => {
                let name = |item: &'a Expr| match &item.kind {
                    ExprKind::Str(name) => Some((name.as_str(), item.span)),
                    _ => None,
                };
                items.iter().map(name).collect::<Option<_>>().map_or(NameList::Unknown, NameList::Listed)
            }
            _ => NameList::Unknown,
        }
    }

    /// Whether a hook may run before each run and undo what the run before changed.
    #[must_use]
    pub fn may_have_hook(&self) -> bool {
        let is_set =
            |call: &Call, position| call.argument("pre_hook", position).is_some_and(|hook| hook.kind != ExprKind::None);
        is_set(self.call, Some(5))
            || self.call.argument("do_bench", Some(10)).is_some()
            || !self.complete
            || self.configs.iter().any(|config| is_set(config.call, None) || config.call.has_star())
    }

    /// Whether configurations may be pruned before they are tried.
    #[must_use]
    pub fn may_prune(&self) -> bool {
        self.call.has_star()
            || self.call.argument("prune_configs_by", Some(2)).is_some_and(|prune| prune.kind != ExprKind::None)
    }

    /// The values that the configurations give `name`; `None` when they are not all known.
    #[must_use]
    pub fn values(&self, name: &str) -> Option<BTreeSet<i128>> {
        let mut values = BTreeSet::new();
        for config in self.configs.iter().filter(|_| self.complete) {
            values.extend(config.values(self.module, name)?);
        }
        (!values.is_empty()).then_some(values)
    }

    /// The integer meta-parameters that each configuration sets. `None` when the configurations are not all known.
    #[must_use]
    pub fn assignments(&self) -> Option<Vec<BTreeMap<&'a str, i128>>> {
        let mut all = Vec::new();
        for config in self.configs.iter().filter(|_| self.complete) {
            all.extend(config.assignments(self.module)?);
        }
        (!all.is_empty() && all.len() <= MAX_ASSIGNMENTS).then_some(all)
    }

    /// Whether each configuration certainly sets `name`.
    #[must_use]
    pub fn sets(&self, name: &str) -> bool {
        self.complete && !self.configs.is_empty() && self.configs.iter().all(|config| config.value(name).is_some())
    }
}

impl<'a> Template<'a> {
    /// The expression that this configuration sets a meta-parameter to.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'a Expr> {
        let ExprKind::Dict { items, .. } = &self.call.argument("kwargs", Some(0))?.kind else { return None };
        items.iter().find(|(key, _)| matches!(&key.kind, ExprKind::Str(key) if key == name)).map(|(_, value)| value)
    }

    fn assignments(&self, module: &'a Module) -> Option<Vec<BTreeMap<&'a str, i128>>> {
        let ExprKind::Dict { items, open: false } = &self.call.argument("kwargs", Some(0))?.kind else { return None };
        let mut rounds: Vec<BTreeMap<&'a str, i128>> = vec![BTreeMap::new()];
        for (target, iter) in &self.clauses {
            let (ExprKind::List(values) | ExprKind::Tuple(values)) = &resolved(module, iter).kind else { return None };
            let name = target.as_name()?;
            let values: Vec<i128> = values.iter().map(|value| integer(value, &|_| None)).collect::<Option<_>>()?;
            let more = rounds.iter().flat_map(|round| {
                values.iter().map(move |value| round.iter().map(|(k, v)| (*k, *v)).chain([(name, *value)]).collect())
            });
            rounds = more.take(MAX_ASSIGNMENTS + 1).collect();
        }
        let known = |round: &BTreeMap<&'a str, i128>, name: &str| match round.get(name) {
            Some(value) => Some(*value),
            None => integer(global(module, name)?, &|_| None),
        };
        let of = |round: &BTreeMap<&'a str, i128>| {
            let set = items.iter().filter_map(|(key, value)| match &key.kind {
                ExprKind::Str(key) => Some((key.as_str(), integer(value, &|name| known(round, name))?)),
                _ => None,
            });
            set.collect()
        };
        Some(rounds.iter().map(of).collect())
    }

    fn values(&self, module: &Module, name: &str) -> Option<Vec<i128>> {
        let value = self.value(name)?;
        if let Some(value) = integer(value, &|_| None) {
            return Some(vec![value]);
        }
        let wanted = value.as_name()?;
        match self.clauses.iter().rev().find(|(target, _)| target.mentions(wanted)) {
            Some((target, iter)) => {
                let iter = resolved(module, iter);
                let (ExprKind::List(items) | ExprKind::Tuple(items)) = &iter.kind else { return None };
                target.as_name()?;
                items.iter().map(|item| integer(item, &|_| None)).collect()
            }
            None => integer(global(module, wanted)?, &|_| None).map(|value| vec![value]),
        }
    }
}

/// A lower bound of the number of items in a sequence.
fn length(module: &Module, sequence: &Expr, depth: usize) -> usize {
    match &sequence.kind {
        _ if depth > DEEP => 0,
        ExprKind::List(items) | ExprKind::Tuple(items) => {
            items.iter().filter(|item| !matches!(item.kind, ExprKind::Starred(_))).count()
        }
        ExprKind::IfExp { body, orelse, .. } => length(module, body, depth + 1).min(length(module, orelse, depth + 1)),
        ExprKind::Name(name) => global(module, name).map_or(0, |value| length(module, value, depth + 1)),
        ExprKind::Call(call) if call.func.as_name() == Some("range") => {
            let number = |at: usize| call.args.get(at).and_then(|arg| arg.value.as_int());
            let span = match (call.args.len(), number(0), number(1)) {
                (1, Some(end), _) => end,
                (2, Some(start), Some(end)) => end.saturating_sub(start),
                _ => 0,
            };
            usize::try_from(span.min(MANY)).unwrap_or(0)
        }
        _ => 0,
    }
}

fn resolved<'a>(module: &'a Module, expr: &'a Expr) -> &'a Expr {
    expr.as_name().and_then(|name| global(module, name)).unwrap_or(expr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::Source;

    /// The lower bound of the number of configurations, whether they are all known, and the values of `B`.
    fn tuned(before: &str, configs: &str) -> (usize, bool, Option<Vec<i128>>) {
        let text = format!(
            "import triton\n{before}\n@triton.autotune(configs={configs}, key=[])\n@triton.jit\ndef k(x, B):\n    pass\n"
        );
        let module = Module::build(&Source::parse(text));
        let tuner = Tuner::of(&module, &module.kernels[0]).unwrap();
        (tuner.at_least, tuner.complete, tuner.values("B").map(|values| values.into_iter().collect()))
    }

    #[test]
    fn configurations_are_found_in_lists_comprehensions_and_functions() {
        let two = "[triton.Config({'B': 1}), triton.Config({'B': 2}, num_warps=4)]";
        let made = "[triton.Config({'B': b}, num_warps=w) for b in [16, 32] for w in (2, 4, 8)]";
        let function = format!("def f():\n    '''Doc.'''\n    # why\n    return {made}");
        for (before, configs, expected) in [
            ("", two, (2, true, Some(vec![1, 2]))),
            ("", made, (6, true, Some(vec![16, 32]))),
            (&format!("C = {two}"), "C", (2, true, Some(vec![1, 2]))),
            (&format!("C = {two}"), &format!("C + {made}"), (8, true, Some(vec![1, 2, 16, 32]))),
            (&function, "f()", (6, true, Some(vec![16, 32]))),
            ("W = [1, 2] if X else [4]", "[triton.Config({'B': b}) for b in W]", (1, true, None)),
            ("", "[triton.Config({'B': b}) for b in W]", (0, true, None)),
            ("", "[triton.Config({'B': b}) for b in [1, 2] if b > 1]", (0, true, Some(vec![1, 2]))),
            ("", "[triton.Config({'B': 1 << i}) for i in range(3, 5)]", (2, true, None)),
            ("", "[triton.Config({'B': 8}), *more]", (1, false, None)),
            ("", "made()", (0, false, None)),
            ("C = []\nC = [1]", "C", (0, false, None)),
            ("C = D\nD = C", "C", (0, false, None)),
            ("", "[triton.Config({'B': 8}) for i in range(-9**9, 9) for j in range(1)]", (0, true, Some(vec![8]))),
            (
                "",
                "[triton.Config({'B': 8}) for i in range(9999999999) for j in range(2)]",
                (1 << 21, true, Some(vec![8])),
            ),
        ] {
            assert_eq!(tuned(before, configs), expected, "{before} {configs}");
        }
    }

    #[test]
    fn assignments_of_each_configuration_are_enumerated() {
        let assignments = |configs: &str| {
            let text = format!(
                "import triton\nN = 4\n@triton.autotune(configs={configs}, key=[])\n@triton.jit\ndef k(x, A, B):\n    pass\n"
            );
            let module = Module::build(&Source::parse(text));
            let tuner = Tuner::of(&module, &module.kernels[0]).unwrap();
            tuner
                .assignments()
                .map(|all| all.iter().map(|one| (one.get("A").copied(), one.get("B").copied())).collect::<Vec<_>>())
        };
        let both = |a: i128, b: i128| (Some(a), Some(b));
        assert_eq!(
            assignments("[triton.Config({'A': 1, 'B': 'x'}), triton.Config({'B': N})]"),
            Some(vec![(Some(1), None), (None, Some(4))])
        );
        assert_eq!(
            assignments("[triton.Config({'A': a, 'B': 2 * b}) for a in [1, 2] for b in [3, 4]]"),
            Some(vec![both(1, 6), both(1, 8), both(2, 6), both(2, 8)])
        );
        assert_eq!(assignments("[triton.Config({'A': a}) for a in made()]"), None);
        assert_eq!(assignments("[triton.Config({'A': 1}), *more]"), None);
    }

    #[test]
    fn conditional_configurations_are_not_sure() {
        for (configs, expected) in [
            ("[triton.Config({'A': 1})] + [triton.Config({'A': 2})]", vec![true, true]),
            ("[triton.Config({'A': a}) for a in [1, 2]]", vec![true]),
            ("[triton.Config({'A': a}) for a in [1, 2] if a > 1]", vec![false]),
            (
                "[triton.Config({'A': 1})] + ([triton.Config({'A': 2})] if B else [triton.Config({})])",
                vec![true, false, false],
            ),
        ] {
            let text = format!("import triton\n@triton.autotune({configs}, [])\n@triton.jit\ndef k(x, A):\n    pass\n");
            let module = Module::build(&Source::parse(text.as_str()));
            let tuner = Tuner::of(&module, &module.kernels[0]).unwrap();
            assert_eq!(tuner.configs.iter().map(|config| config.is_sure).collect::<Vec<_>>(), expected, "{configs}");
            assert!(!tuner.may_prune());
            let pruned = Module::build(&Source::parse(text.replace("[])", "[], {'top_k': 2})")));
            assert!(Tuner::of(&pruned, &pruned.kernels[0]).unwrap().may_prune());
        }
    }

    #[test]
    fn name_lists_and_hooks_of_autotuners_are_read() {
        let text = "import triton\n@triton.autotune([triton.Config({}, pre_hook=h)], ['n'], reset_to_zero=names)\n\
            @triton.jit\ndef k(x, n):\n    pass\n";
        let module = Module::build(&Source::parse(text));
        let tuner = Tuner::of(&module, &module.kernels[0]).unwrap();
        assert!(matches!(tuner.names("key"), NameList::Listed(names) if names[0].0 == "n"));
        assert_eq!((tuner.names("reset_to_zero"), tuner.names("restore_value")), (NameList::Unknown, NameList::Absent));
        assert!(tuner.may_have_hook());
    }
}
