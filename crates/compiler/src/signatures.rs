//! Signatures to lower a kernel with: the types of its run-time parameters and the values of its compile-time
//! parameters. The best are written in a comment or were recorded when the program ran; without these, they are guessed
//! from the text of the file.

mod configs;
mod constant;
mod expression_parts;
mod guessed;
mod launch_evidence;
mod launch_parameters;
mod parameter_names;
mod usage;
mod variants;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub(super) use configs::usual_stages;
pub use constant::Constant;
pub use variants::{Variant, Variants};
pub(crate) use variants::{certain_variants, guessed_variants};

use model::analysis::types::dtype::Dtype;
use model::kernel::ast::ExprKind;
use model::kernel::{Kernel, Module, Param};

/// The greatest number of guesses that are tried.
const MAX: usize = 12;

/// A signature that a kernel may be lowered with.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guess {
    /// The types of run-time parameters, in Triton's notation: `*fp16`, `i32`.
    pub signature: BTreeMap<String, String>,
    /// The values of all other parameters.
    pub constexprs: BTreeMap<String, Constant>,
    /// The run-time parameters that Triton specializes as multiples of 16.
    pub aligned: Vec<String>,
    /// The source of the signature.
    pub certainty: GuessOrigin,
}

/// The source of a [`Guess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GuessOrigin {
    /// A comment gives the signature: an error under it is an error of the program.
    Written,
    /// The signature was recorded when the program ran: an error under it is an error of the program.
    Recorded,
    /// A part of the signature is guessed: an error under it may be due to the guess.
    Guessed,
}

/// The signatures to lower `kernel` of the file `text` with, best first. All of them are [`GuessOrigin::Guessed`] or
/// none.
#[must_use]
pub fn guesses(module: &Module, kernel: &Kernel, text: &str) -> Vec<Guess> {
    if kernel.has_error || kernel.params.iter().any(|param| param.variadic) {
        return Vec::new();
    }
    let launch = Launching::of(kernel);
    let certain = launch_evidence::all(module, &launch, text);
    let found = if certain.complete.is_empty() {
        guessed::all(module, &launch, &certain.partial, text)
            .into_iter()
            .map(|given| (GuessOrigin::Guessed, given))
            .collect()
    } else {
        certain.complete
    };
    let mut all: Vec<Guess> = Vec::new();
    for (certainty, given) in found {
        let new = guess(certainty, given);
        if all.len() < MAX && all.iter().all(|known| !known.is_like(&new)) {
            all.push(new);
        }
    }
    all
}

/// The type or value of a parameter.
#[derive(Clone, Debug, PartialEq)]
enum Given {
    /// A type, and whether values are multiples of 16.
    Type(String, bool),
    /// A value.
    Constant(Constant),
}

/// The types and values of parameters, by name.
type Givens = BTreeMap<String, Given>;

fn guess(certainty: GuessOrigin, givens: Givens) -> Guess {
    let mut guess = Guess { signature: BTreeMap::new(), constexprs: BTreeMap::new(), aligned: Vec::new(), certainty };
    for (name, given) in givens {
        match given {
            Given::Type(word, is_aligned) => {
                guess.aligned.extend(is_aligned.then(|| name.clone()));
                guess.signature.insert(name, word);
            }
            Given::Constant(value) => {
                guess.constexprs.insert(name, value);
            }
        }
    }
    guess
}

impl Guess {
    fn is_like(&self, other: &Self) -> bool {
        self.signature == other.signature && self.constexprs == other.constexprs && self.aligned == other.aligned
    }
}

/// How Triton passes the parameters of a kernel.
#[derive(Debug)]
struct Launching<'a> {
    kernel: &'a Kernel,
    /// The parameters whose values the compiler does not specialize.
    unspecialized: BTreeSet<&'a str>,
    /// The parameters that the compiler does not specialize on alignment.
    unaligned: BTreeSet<&'a str>,
}

impl<'a> Launching<'a> {
    fn of(kernel: &'a Kernel) -> Self {
        let unspecialized = listed(kernel, "do_not_specialize");
        let unaligned = listed(kernel, "do_not_specialize_on_alignment");
        Self { kernel, unspecialized, unaligned }
    }

    fn may_be_aligned(&self, param: &Param) -> bool {
        let name = param.name.as_str();
        !self.unspecialized.contains(name) && !self.unaligned.contains(name)
    }

    fn pointer(&self, param: &Param, pointee: &str) -> Given {
        Given::Type(format!("*{pointee}"), self.may_be_aligned(param))
    }

    /// An integer of the written type, else of the smallest type that holds it.
    fn integer(&self, param: &Param, value: i128, word: Option<&str>) -> Option<Given> {
        if param.constexpr {
            return Some(Given::Constant(Constant::integer(value)?));
        }
        let annotated = annotated(param);
        if value == 1 && annotated.is_none() && !self.unspecialized.contains(param.name.as_str()) {
            return Some(Given::Constant(Constant::Int(1)));
        }
        let is_aligned = value % 16 == 0 && self.may_be_aligned(param);
        let word = annotated.or(word.map(str::to_owned));
        let word = word.or_else(|| integer_word(value).map(str::to_owned))?;
        Some(Given::Type(word, is_aligned))
    }
}

/// The type of a run-time integer.
fn integer_word(value: i128) -> Option<&'static str> {
    if i32::try_from(value).is_ok() {
        Some("i32")
    } else if i64::try_from(value).is_ok() {
        Some("i64")
    } else {
        u64::try_from(value).ok().map(|_| "u64")
    }
}

/// The type of run-time numbers in an annotation.
fn annotated(param: &Param) -> Option<String> {
    let annotation = param.annotation.as_ref()?;
    match &annotation.kind {
        ExprKind::Str(text) => Dtype::of_signature(text).map(|number| number.signature().to_owned()),
        _ => Dtype::of_member(annotation.dotted()?.last()?).map(|number| number.signature().to_owned()),
    }
}

/// The parameters that a list in `@triton.jit(…)` names or counts.
fn listed<'a>(kernel: &'a Kernel, word: &str) -> BTreeSet<&'a str> {
    let calls = kernel.decorators.iter().filter_map(|decorator| decorator.expr.as_call());
    let mut found = BTreeSet::new();
    for list in calls.filter_map(|call| call.argument(word, None)) {
        // If the list is conditional, all parameters that may be listed count.
        list.walk(&mut |item| {
            let param = match &item.kind {
                ExprKind::Str(name) => kernel.param(name),
                _ => item.as_int().and_then(|at| kernel.params.get(usize::try_from(at).ok()?)),
            };
            found.extend(param.map(|param| param.name.as_str()));
        });
    }
    found
}

#[cfg(test)]
mod tests;
