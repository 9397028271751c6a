//! Mutations: small changes of kernels that compile. Most mutants fail to compile, some do not; both are training data.

mod edits;
mod idioms;
mod scope;

pub(crate) use scope::places;

use base::rng::Rng;
use model::syntax::Span;

use super::oracle::TypedExpression;
use super::program::KernelProgram;
use super::synthesize::{SyntheticTask, mixed};

/// The number of mutations out of three that insert an idiom; the others edit existing code.
const IDIOMS_OF_THREE: u64 = 2;
/// One in this many mutants has two mutations.
const DOUBLE: u64 = 10;

/// Makes up to `count` different mutants of a task's kernel; `typed` are its expressions with their types.
#[must_use]
pub(crate) fn mutants(task: &SyntheticTask, typed: &[TypedExpression], count: usize, seed: u64) -> Vec<KernelProgram> {
    let mut chance = Rng::new(mixed(seed ^ 0x5eed, task.number as u64));
    let places = places(&task.program, typed);
    let text = task.program.text.as_str();
    let ground = idioms::IdiomTarget { text, typed, places: &places, style: &task.style };
    let mut made: Vec<KernelProgram> = Vec::new();
    for _ in 0..count * 3 {
        if made.len() == count {
            break;
        }
        let mut changes = Vec::new();
        for _ in 0..if chance.below(DOUBLE) == 0 { 2 } else { 1 } {
            changes.extend(if chance.below(3) < IDIOMS_OF_THREE {
                let at = chance.below(idioms::count() as u64) as usize;
                idioms::put(at, &ground, &mut chance).map(|change| vec![change])
            } else {
                edits::change(&task.program, &mut chance)
            });
        }
        let Some(text) = changed(text, changes.concat()) else { continue };
        let program = task.program.with(text);
        if program != task.program && !made.contains(&program) {
            made.push(program);
        }
    }
    made
}

/// The text with spans replaced; `None` when the spans overlap or there are none.
fn changed(text: &str, mut changes: Vec<(Span, String)>) -> Option<String> {
    changes.sort();
    let mut out = String::with_capacity(text.len() + 64);
    let mut done = 0;
    for (span, new) in &changes {
        out.push_str(text.get(done..span.start)?);
        out.push_str(new);
        done = span.end;
    }
    out.push_str(text.get(done..)?);
    (!changes.is_empty()).then_some(out)
}
