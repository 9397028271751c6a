//! Launches from spec comments: the matching launch of a candidate's own comment, and the places of a comment's
//! numbers, so that they can be edited.

use std::path::Path;

use model::syntax::Span;
use protocol::{ArgumentValue, Workload, WorkloadSource};

use super::comment::comments;

/// The launch of a candidate that corresponds to `workload` of the original. Compile-time constants, launch options and
/// the grid belong to the source of a kernel, so they come from the candidate's own comment if the comment is otherwise
/// the same.
#[must_use]
pub fn launch_of_candidate(workload: &Workload, original: &str, candidate: &str) -> Workload {
    let at = launches(original, workload).iter().position(|(_, one)| is_same(one, workload));
    let own = at.and_then(|at| launches(candidate, workload).into_iter().nth(at));
    let Some((_, own)) = own else { return workload.clone() };
    let grid = match (own.grid.is_empty(), workload.grid.is_empty()) {
        (false, true) => Vec::new(),
        // The launch must stay resizable, because it is also made at other sizes.
        (true, false) => own.launches.iter().flat_map(|launch| &launch.grid).map(i64::to_string).collect(),
        _ => own.grid,
    };
    let mut constants = own.constants;
    constants.retain(|name| passed(workload).all(|(passed, _)| passed != name));
    Workload { kwargs: own.kwargs, constants, launches: own.launches, grid, ..workload.clone() }
}

fn is_same(one: &Workload, other: &Workload) -> bool {
    let grid = |workload: &Workload| workload.launches.first().map(|launch| launch.grid.clone());
    one.kwargs == other.kwargs && one.grid == other.grid && grid(one) == grid(other)
}

/// The launches in the comments of a file with the same arguments as `like`, except for constants.
fn launches(text: &str, like: &Workload) -> Vec<(Span, Workload)> {
    let mut all = if like.source == WorkloadSource::Launch { comments(Path::new(""), text) } else { Ok(Vec::new()) }
        .unwrap_or_default();
    all.retain(|(_, one)| {
        let is_given = |argument: &(String, ArgumentValue)| one.kwargs.contains(argument);
        let is_known = |argument: &(String, ArgumentValue)| like.kwargs.contains(argument);
        let is_plain = |(_, value): &(String, ArgumentValue)| {
            !matches!(value, ArgumentValue::Tensor(_) | ArgumentValue::List(_) | ArgumentValue::Tuple(_))
        };
        one.source == WorkloadSource::Launch
            && one.entry == like.entry
            && passed(like).all(is_given)
            && one
                .kwargs
                .iter()
                .all(|argument| is_known(argument) || one.constants.contains(&argument.0) && is_plain(argument))
    });
    all
}

/// The keyword arguments that are not compile-time constants.
fn passed(workload: &Workload) -> impl Iterator<Item = &(String, ArgumentValue)> {
    workload.kwargs.iter().filter(|(name, _)| !workload.constants.contains(name))
}

/// The integers of a comment that are compile-time constants or launch options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchConstants {
    /// Their names, values and spans.
    pub given: Vec<(String, i64, Span)>,
    /// The byte offset at which more can be added.
    pub end: usize,
}

/// The integers of the comment that describes this launch; `None` if no comment of the file does.
#[must_use]
pub fn numbers_of_comment(text: &str, workload: &Workload) -> Option<LaunchConstants> {
    let (line, found) = launches(text, workload).into_iter().find(|(_, one)| is_same(one, workload))?;
    let comment = text.get(line.start..line.end)?;
    let number = |(name, value): &(String, ArgumentValue)| match value {
        ArgumentValue::Int(value) if found.constants.contains(name) => {
            let (start, length) = number_behind(comment, name)?;
            Some((name.clone(), *value, Span::new(line.start + start, line.start + start + length)))
        }
        _ => None,
    };
    Some(LaunchConstants { given: found.kwargs.iter().filter_map(number).collect(), end: line.end })
}

/// The start and length of the digits of ` NAME=DIGITS`, if that occurs exactly once.
fn number_behind(comment: &str, name: &str) -> Option<(usize, usize)> {
    let sought = format!("{name}=");
    let mut found = comment.match_indices(&sought).filter_map(|(at, _)| {
        let start = at + sought.len();
        let rest = &comment[start..];
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let is_apart = comment[..at].ends_with(char::is_whitespace)
            && rest[length..].chars().next().is_none_or(char::is_whitespace);
        (is_apart && length > 0).then_some((start, length))
    });
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads_of_comments;

    const COMMENT: &str = "# warpsmith: workload entry=k[cdiv(n,BLOCK)] x=f16[64] n=64 BLOCK=16 num_warps=8";
    const KERNEL: &str = "def k(x, n, BLOCK: tl.constexpr): ...\n";

    fn text(comment: &str, kernel: &str) -> String {
        format!("import triton\n\n  {comment}  \n{kernel}")
    }

    fn first(text: &str) -> Workload {
        workloads_of_comments(Path::new("/f.py"), text).unwrap().remove(0)
    }

    #[test]
    fn constexprs_options_and_grid_come_from_the_candidates_comment() {
        let original = text(COMMENT, KERNEL);
        let workload = first(&original);
        let of = |comment: &str, kernel: &str| launch_of_candidate(&workload, &original, &text(comment, kernel));
        let own = of(
            &COMMENT.replace("BLOCK=16", "BLOCK=32 G=2").replace("=8", "=4"),
            &KERNEL.replace("n, ", "n, G: tl.constexpr, "),
        );
        let ints = |names: &[&str]| -> Vec<ArgumentValue> {
            names.iter().map(|name| own.kwargs.iter().find(|(known, _)| known == name).unwrap().1.clone()).collect()
        };
        assert_eq!(
            ints(&["BLOCK", "G", "num_warps"]),
            [ArgumentValue::Int(32), ArgumentValue::Int(2), ArgumentValue::Int(4)]
        );
        assert_eq!((own.launches[0].grid.as_slice(), own.file.clone()), (&[2][..], workload.file.clone()));
        // What the original is passed still follows the sizes that are tried.
        let specialized = of(&COMMENT.replace("BLOCK=16", "BLOCK=32"), &KERNEL.replace("n, ", "n: tl.constexpr, "));
        assert_eq!(specialized.constants, ["BLOCK", "num_warps"]);
        assert_eq!(of(&COMMENT.replace("cdiv(n,BLOCK)", "4"), KERNEL).grid, ["4"]);
        for other in ["x=f16[32]", "x=f16[64] y=f16[64]"] {
            assert_eq!(
                of(&COMMENT.replace("x=f16[64]", other).replace("BLOCK=16", "BLOCK=32"), KERNEL),
                workload,
                "{other}"
            );
        }
        assert_eq!(of("", KERNEL), workload);
        assert_eq!(of("# warpsmith: workload entry=", KERNEL), workload);
        // A candidate cannot make an argument smaller.
        assert_eq!(of(&COMMENT.replace("n=64", "n=32"), &KERNEL.replace("n, ", "n: tl.constexpr, ")), workload);
    }

    #[test]
    fn numbers_in_the_comment_have_their_spans() {
        let original = text(&COMMENT.replace("n=64", "n=64 B=1"), &KERNEL.replace("n, ", "n, B: tl.constexpr, "));
        let numbers = numbers_of_comment(&original, &first(&original)).unwrap();
        let shown: Vec<(&str, i64, &str)> = numbers
            .given
            .iter()
            .map(|(name, value, span)| (name.as_str(), *value, &original[span.start..span.end]))
            .collect();
        assert_eq!(shown, [("B", 1, "1"), ("BLOCK", 16, "16"), ("num_warps", 8, "8")]);
        assert!(original[..numbers.end].ends_with("num_warps=8"));
        assert_eq!(numbers_of_comment(&text("", KERNEL), &first(&original)), None);
    }
}
