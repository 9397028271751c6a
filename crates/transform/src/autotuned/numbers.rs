//! The numbers that a launch passes, which move to the configurations.

use model::kernel::ast::{Arg, Expr, ExprKind, Stmt, StmtKind, has_star, walk_expressions};
use model::kernel::{HostFunction, Launch};
use model::syntax::Span;
use rules::Edit;

use crate::launched::innermost;
use crate::names::uses;
use crate::subject::Subject;
use crate::subject_launch::passed;
use crate::words::indent_of;
use crate::written::{only_value, word_count};

/// The options that a configuration can set.
const OPTIONS: [&str; 2] = ["num_warps", "num_stages"];
/// The least power of two that is taken for a tile size.
const LEAST: i64 = 16;

/// A number of the launch that moves to the configurations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LaunchNumber<'a> {
    pub(super) name: &'a str,
    pub(super) value: i64,
    /// The host's name for the number, if it has one.
    pub(super) bound: Option<&'a str>,
    /// The index of the argument.
    at: usize,
}

/// The numbers that the only launch of a kernel passes.
pub(super) struct LaunchNumbers<'a> {
    pub(super) tiles: Vec<LaunchNumber<'a>>,
    pub(super) warps: Option<LaunchNumber<'a>>,
    pub(super) stages: Option<LaunchNumber<'a>>,
}

impl<'a> LaunchNumbers<'a> {
    /// Reads the launch; `None` where it passes something that is not understood.
    pub(super) fn of(subject: &'a Subject<'a>, launch: &'a Launch, host: &'a HostFunction) -> Option<Self> {
        let kernel = subject.kernel;
        let is_known = |arg: &Arg| {
            let Some((name, _)) = &arg.keyword else { return true };
            kernel.param(name).is_some() || OPTIONS.contains(&name.as_str())
        };
        let is_plain = !has_star(&launch.args) && launch.args.iter().all(is_known);
        let takes_option = OPTIONS.iter().any(|option| kernel.param(option).is_some());
        if !is_plain || takes_option {
            return None;
        }
        let tiles = passed(subject, launch).into_iter().filter(|(param, _)| is_tile(subject, param));
        let tiles = tiles.filter_map(|(param, arg)| number(launch, host, param, arg));
        let tiles = tiles.filter(|number| number.value >= LEAST && number.value.count_ones() == 1).collect();
        // An option that is passed must have a known value.
        let option = |name: &'static str| {
            let is_it = |arg: &&Arg| arg.keyword.as_ref().is_some_and(|(keyword, _)| keyword == name);
            let Some(arg) = launch.args.iter().find(is_it) else { return Some(None) };
            number(launch, host, name, arg).map(Some)
        };
        Some(Self { tiles, warps: option("num_warps")?, stages: option("num_stages")? })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &LaunchNumber<'a>> {
        self.tiles.iter().chain(&self.warps).chain(&self.stages)
    }

    /// The edits that remove the numbers from the launch, and the host's names for them. `seen` returns how often a
    /// name may occur elsewhere.
    pub(super) fn removed(
        &self,
        subject: &Subject<'_>,
        launch: &Launch,
        host: &HostFunction,
        seen: impl Fn(&LaunchNumber<'a>) -> usize,
    ) -> Option<Vec<Edit>> {
        let text = subject.candidate.text.as_str();
        let mut edits = self.without(subject, launch)?;
        let mut statements: Vec<&Stmt> = Vec::new();
        for number in self.all() {
            let Some(bound) = number.bound else { continue };
            let keyword = usize::from(launch.args[number.at].keyword.as_ref().is_some_and(|(name, _)| name == bound));
            let seen = seen(number);
            let quoted = quoted(host, bound);
            // The name is bound, passed, and used in the grid; any further use needs the number.
            if uses(&host.body, bound) != 2 + seen
                || word_count(text.get(host.span.start..host.span.end)?, bound) != 2 + seen + keyword + quoted
            {
                return None;
            }
            let statement = host.body.iter().find(|stmt| stmt.targets().iter().any(|target| target.mentions(bound)))?;
            if !statements.iter().any(|known| known.span == statement.span) {
                statements.push(statement);
            }
        }
        for statement in statements {
            edits.push(Edit { span: self.line(text, statement)?, text: String::new() });
        }
        Some(edits)
    }

    /// The edits that remove the numbers from the arguments. Positional arguments after a number become keyword
    /// arguments.
    fn without(&self, subject: &Subject<'_>, launch: &Launch) -> Option<Vec<Edit>> {
        let text = subject.candidate.text.as_str();
        let is_number = |at: usize| self.all().any(|number| number.at == at);
        let mut edits = Vec::new();
        let mut is_behind = false;
        for (at, arg) in launch.args.iter().enumerate() {
            if is_number(at) {
                let before = launch.args.get(at.checked_sub(1)?)?.span.end;
                let gone = text.get(before..arg.span.end).filter(|gone| !gone.contains('#'))?;
                edits.push(Edit { span: Span::new(arg.span.end - gone.len(), arg.span.end), text: String::new() });
                is_behind |= arg.keyword.is_none();
            } else if is_behind && arg.keyword.is_none() {
                let name = &subject.kernel.params.get(at)?.name;
                edits.push(Edit { span: Span::new(arg.span.start, arg.span.start), text: format!("{name}=") });
            }
        }
        Some(edits)
    }

    /// The lines of a statement that binds nothing else.
    fn line(&self, text: &str, statement: &Stmt) -> Option<Span> {
        let StmtKind::Assign { targets, .. } = &statement.kind else { return None };
        let [target] = targets.as_slice() else { return None };
        let mut names = Vec::new();
        target.walk(&mut |part| names.extend(part.as_name()));
        let is_gone = |name: &&str| self.all().any(|number| number.bound == Some(*name));
        let start = statement.span.start - indent_of(text, statement.span.start)?.len();
        let behind = text.get(statement.span.end..)?;
        let (rest, _) = behind.split_once('\n')?;
        let is_alone = rest.trim().is_empty() || rest.trim_start().starts_with('#');
        (is_alone && names.iter().all(is_gone)).then(|| Span::new(start, statement.span.end + rest.len() + 1))
    }
}

/// Whether a parameter is a tile size.
fn is_tile(subject: &Subject<'_>, param: &str) -> bool {
    let (module, kernel) = (&subject.candidate.module, subject.kernel);
    let is_given = kernel.heuristics.iter().flatten().any(|name| name == param);
    let mut has_lanes = false;
    walk_expressions(&kernel.body, &mut |expr| {
        let Some(call) = expr.as_call() else { return };
        let is_lanes = module.language_member(kernel, &call.func).as_deref() == Some("arange");
        has_lanes |= is_lanes && call.argument("end", Some(1)).and_then(Expr::as_name) == Some(param);
    });
    has_lanes && !is_given && kernel.param(param).is_some_and(|param| param.constexpr)
}

/// The number that an argument is: a literal, or the value of a name of the host.
fn number<'a>(launch: &'a Launch, host: &'a HostFunction, name: &'a str, arg: &'a Arg) -> Option<LaunchNumber<'a>> {
    let at = launch.args.iter().position(|other| other.span == arg.span)?;
    let int = |expr: &Expr| i64::try_from(expr.as_int()?).ok();
    if let Some(value) = int(&arg.value) {
        return Some(LaunchNumber { name, value, bound: None, at });
    }
    let bound = arg.value.as_name().filter(|name| !host.params.iter().any(|param| param == name))?;
    let value = int(only_value(&host.body, bound)?)?;
    // The binding must be at the top level of the function, where it is never skipped.
    let is_first = host.body.iter().any(|stmt| stmt.targets().iter().any(|target| target.mentions(bound)));
    (is_first && innermost(host, arg.span).is_some()).then_some(LaunchNumber { name, value, bound: Some(bound), at })
}

/// How often a name occurs in quotes, as in `meta["B"]`.
fn quoted(host: &HostFunction, name: &str) -> usize {
    let mut count = 0;
    walk_expressions(&host.body, &mut |expr| {
        count += usize::from(matches!(&expr.kind, ExprKind::Str(text) if text == name));
    });
    count
}
