//! Binds the arguments of a call to parameters.

use super::engine::Engine;
use super::value::{AbstractValue, Const, ProblemKind};
use crate::api::{Lookup, MemberParameter, Table, VersionCertainty};
use crate::kernel::ast::Call;
use crate::syntax::Span;

/// The arguments of a call by parameter name.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound<'a> {
    named: Vec<(String, AbstractValue<'a>)>,
    /// The positional arguments that `*args` takes.
    pub(super) rest: Vec<AbstractValue<'a>>,
}

impl<'a> Bound<'a> {
    /// The value passed for a parameter; `None` when its default applies.
    pub(super) fn get(&self, name: &str) -> Option<&AbstractValue<'a>> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The same, but `None` also when Python's `None` is passed.
    pub(super) fn given(&self, name: &str) -> Option<&AbstractValue<'a>> {
        self.get(name).filter(|value| value.is_none() != Some(true))
    }

    /// The value passed for the first of several names that a parameter has in different releases.
    pub(super) fn any(&self, names: &[&str]) -> Option<&AbstractValue<'a>> {
        names.iter().find_map(|name| self.get(name))
    }

    /// The constant passed for a parameter.
    pub(super) fn constant(&self, name: &str) -> Option<&Const> {
        self.get(name).and_then(AbstractValue::constant)
    }

    /// The value of a flag: the passed one or `default`. `None` when it is not known.
    pub(super) fn flag(&self, name: &str, default: bool) -> Option<bool> {
        match self.get(name) {
            None => Some(default),
            Some(AbstractValue::Const(value)) => value.truth(),
            Some(_) => None,
        }
    }
}

/// The evaluated arguments of a call.
pub(super) struct EvaluatedCall<'a, 'v> {
    /// The receiver of a method call.
    pub(super) receiver: Option<AbstractValue<'a>>,
    pub(super) call: &'v Call,
    pub(super) values: &'v [AbstractValue<'a>],
}

/// The reason why arguments do not match the parameters.
pub(super) enum Misfit {
    Unknown(String),
    Missing(String),
    TooMany(usize),
    Twice(String),
}

impl Misfit {
    fn text(&self, function: &str, params: &[MemberParameter]) -> String {
        match self {
            Self::Unknown(name) => {
                let names: Vec<&str> = params.iter().map(|param| param.name.trim_start_matches('*')).collect();
                let near = crate::api::nearest(name, &names);
                let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                format!("`{function}` has no parameter `{name}`{hint}")
            }
            Self::Missing(name) => format!("`{function}` needs `{name}`"),
            Self::TooMany(most) => format!("`{function}` takes {most} positional arguments at most"),
            Self::Twice(name) => format!("`{function}` gets `{name}` twice"),
        }
    }
}

/// Binds arguments to parameters.
pub(super) fn bind<'a>(given: &EvaluatedCall<'a, '_>, params: &[MemberParameter]) -> Result<Bound<'a>, Misfit> {
    let mut bound = Bound::default();
    let is_variadic = |param: &&MemberParameter| param.name.starts_with('*') && param.name.len() > 1;
    let plain: Vec<&MemberParameter> = params.iter().take_while(|param| !param.name.starts_with('*')).collect();
    let takes_rest = params.iter().find(is_variadic).is_some_and(|param| !param.name.starts_with("**"));
    let takes_any = params.iter().any(|param| param.name.starts_with("**"));
    let positional = given.receiver.iter().chain(
        given.values.iter().zip(&given.call.args).filter(|(_, arg)| arg.keyword.is_none()).map(|(value, _)| value),
    );
    for (at, value) in positional.enumerate() {
        match plain.get(at) {
            Some(param) => bound.named.push((param.name.clone(), value.clone())),
            None if takes_rest => bound.rest.push(value.clone()),
            None => return Err(Misfit::TooMany(plain.len())),
        }
    }
    for (value, arg) in given.values.iter().zip(&given.call.args) {
        let Some((name, _)) = &arg.keyword else { continue };
        let known = params.iter().any(|param| param.name == *name);
        if !known && !takes_any {
            return Err(Misfit::Unknown(name.clone()));
        }
        if bound.get(name).is_some() {
            return Err(Misfit::Twice(name.clone()));
        }
        bound.named.push((name.clone(), value.clone()));
    }
    let missing = params
        .iter()
        .find(|param| !param.name.starts_with('*') && param.default.is_none() && bound.get(&param.name).is_none());
    match missing {
        Some(param) => Err(Misfit::Missing(param.name.clone())),
        None => Ok(bound),
    }
}

impl<'a> Engine<'a> {
    /// Binds the arguments of a call to the parameters of a member of Triton. Reports arguments that do not match.
    pub(super) fn bind_member(&mut self, span: Span, path: &str, given: &EvaluatedCall<'a, '_>) -> Option<Bound<'a>> {
        let Lookup::Found(member) = self.target.lookup(path) else { return None };
        match bind(given, &member.params) {
            Ok(bound) => Some(bound),
            Err(misfit) => {
                // Where the release is not known, the call may be for another one.
                let tables = if self.target.certainty == VersionCertainty::Known { &[][..] } else { Table::all() };
                let fits = |table: &&'static Table| match table.lookup(path) {
                    Lookup::Found(member) => bind(given, &member.params).ok(),
                    _ => None,
                };
                if let Some(bound) = tables.iter().rev().find_map(fits) {
                    return Some(bound);
                }
                if !self.is_asked_for(&misfit) {
                    let name = path.strip_prefix("triton.language.").map_or(path.to_owned(), |name| {
                        name.strip_prefix("tensor.").map_or_else(|| format!("tl.{name}"), str::to_owned)
                    });
                    self.problem(ProblemKind::Keyword, span, misfit.text(&name, &member.params));
                }
                None
            }
        }
    }

    /// Whether the file asks whether a parameter exists, and a branch that may not be compiled uses it:
    /// `"two_ctas" in inspect.signature(tl.dot).parameters`.
    fn is_asked_for(&self, misfit: &Misfit) -> bool {
        let Misfit::Unknown(name) = misfit else { return false };
        self.uncertain > 0 && ['"', '\''].iter().any(|quote| self.text.contains(&format!("{quote}{name}{quote}")))
    }

    /// Checks the arguments of a call that is not evaluated (`tl.range(…)` in a loop's head).
    pub(super) fn check_arguments(&mut self, span: Span, path: &str, call: &Call) {
        if call.has_star() {
            return;
        }
        let values = vec![AbstractValue::Unknown; call.args.len()];
        self.bind_member(span, path, &EvaluatedCall { receiver: None, call, values: &values });
    }

    /// Binds the arguments of a call to the parameters of a function of the file.
    pub(super) fn bind_kernel(
        &mut self,
        span: Span,
        name: &str,
        params: &[MemberParameter],
        given: &EvaluatedCall<'a, '_>,
    ) -> Option<Bound<'a>> {
        match bind(given, params) {
            Ok(bound) => Some(bound),
            Err(misfit) => {
                self.problem(ProblemKind::Keyword, span, misfit.text(name, params));
                None
            }
        }
    }
}
