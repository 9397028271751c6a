//! Removes a kernel's autotuner, for skills that restructure it: the launch then passes the numbers.

use model::syntax::Span;
use rules::{Edit, apply_edits};

use super::lines::{line_end, line_start};
use super::one_configuration::largest;
use super::subject::Subject;
use super::subject_launch::only_launch;

/// Options of a configuration that a launch can pass as well.
const OPTIONS: [&str; 4] = ["num_warps", "num_stages", "num_ctas", "maxnreg"];

/// The file with the numbers of the largest configuration at the only launch, and without the autotuner; `None` where
/// the autotuner does more than choose numbers.
fn untuned(subject: &Subject<'_>) -> Option<String> {
    let (kernel, text) = (subject.kernel, subject.candidate.text.as_str());
    let tuner = kernel.autotune.as_ref()?;
    let decorator = kernel.decorators.iter().find(|decorator| decorator.expr.span == tuner.span)?;
    let arguments = &decorator.expr.as_call()?.args;
    let names: Vec<&str> = arguments.iter().filter_map(|arg| Some(arg.keyword.as_ref()?.0.as_str())).collect();
    if names.iter().any(|name| !["configs", "key"].contains(name)) || arguments.len() > 2 {
        return None;
    }
    let config = largest(tuner.configs.as_deref()?)?;
    let launch = only_launch(subject)?;
    let mut passed = String::new();
    for (name, value) in config.meta.iter().chain(&config.options) {
        let is_known = kernel.param(name).is_some() || OPTIONS.contains(&name.as_str());
        let is_passed = launch.args.iter().any(|arg| arg.keyword.as_ref().is_some_and(|(given, _)| given == name));
        let number = value.as_int().filter(|_| is_known && !is_passed)?;
        passed += &format!(", {name}={number}");
    }
    let end = launch.args.last()?.span.end;
    let lines = Span::new(line_start(text, tuner.span.start), line_end(text, tuner.span.end) + 1);
    let is_alone = text[lines.start..tuner.span.start].trim() == "@";
    let edits = [Edit { span: lines, text: String::new() }, Edit { span: Span::new(end, end), text: passed }];
    is_alone.then(|| apply_edits(text, &edits))
}

/// The edits of a kernel, through a version of it without its autotuner if it has one.
pub(super) fn without_tuner(
    subject: &Subject<'_>,
    of: impl FnOnce(&Subject<'_>) -> Option<Vec<Edit>>,
) -> Option<Vec<Edit>> {
    match untuned(subject) {
        Some(text) => subject.edits_through(&text, of),
        None => of(subject),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Candidate;
    use crate::single_tile::SingleTile;
    use crate::turned::turned_by;
    use protocol::Workload;

    const TEXT: &str = "import triton
import triton.language as tl

@triton.autotune(
    configs=[triton.Config({\"B\": 256}, num_warps=8), triton.Config({\"B\": 64}, num_warps=4)],
    key=[\"n\"],
)
@triton.jit
def k(x, n, B: tl.constexpr):
    total = 0.0
    for start in range(0, n, B):
        at = start + tl.arange(0, B)
        total += tl.sum(tl.load(x + at, mask=at < n, other=0.0))
    tl.store(x, total)

def run(x):
    k[lambda meta: (1,)](
        x,
        x.numel(),
    )
";

    fn without(text: &str) -> Option<String> {
        let candidate = Candidate::original(text);
        let workload = Workload { entry: "run".to_owned(), ..Workload::default() };
        untuned(&Subject::new(&candidate, text, "k", &workload).unwrap())
    }

    #[test]
    fn the_launch_gets_the_largest_configuration() {
        let (head, tail) = (TEXT.split("@triton.autotune").next().unwrap(), TEXT.split("@triton.jit").nth(1).unwrap());
        let tail = tail.replace("x.numel(),", "x.numel(), B=256, num_warps=8,");
        assert_eq!(without(TEXT).unwrap(), format!("{head}@triton.jit{tail}"));
    }

    #[test]
    fn an_autotuner_with_hooks_or_resets_is_kept() {
        for (old, new) in [
            ("key=[\"n\"],", "key=[\"n\"], reset_to_zero=[\"x\"],"),
            ("num_warps=8)", "num_warps=8, pre_hook=hook)"),
            ("x.numel(),", "x.numel(), num_warps=2,"),
        ] {
            assert_eq!(TEXT.matches(old).count(), 1, "{old}");
            assert_eq!(without(&TEXT.replace(old, new)), None, "{new}");
        }
    }

    #[test]
    fn skills_can_restructure_a_kernel_without_its_autotuner() {
        let all = turned_by(&SingleTile, TEXT);
        assert!(all[0].contains("x.numel(), B=triton.next_power_of_2(max(x.numel(), 1)), num_warps=8"), "{}", all[0]);
        assert!(!all[0].contains("autotune"));
    }
}
