//! Insertion of Python idioms that users write, from the table `idioms.txt`.

use std::sync::LazyLock;

use base::rng::Rng;
use model::syntax::Span;

use super::scope::{ScopedName, ScopedStatement, ValueKind, kind_of};
use crate::oracle::TypedExpression;
use crate::synthesize::{Style, filled};

/// The place at which an idiom is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Site {
    /// In place of an expression of this kind.
    Expression(ValueKind),
    /// After a statement.
    Statement,
}

/// A line of the table.
#[derive(Debug)]
pub(super) struct Idiom {
    site: Site,
    template: String,
}

/// The parsed table.
static IDIOMS: LazyLock<Vec<Idiom>> = LazyLock::new(|| {
    let lines = include_str!("idioms.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(idiom).collect()
});

fn idiom(line: &str) -> Option<Idiom> {
    let (site, template) = line.split_once(": ")?;
    let site = match site {
        "float" => Site::Expression(ValueKind::Float),
        "int" => Site::Expression(ValueKind::Int),
        "pointer" => Site::Expression(ValueKind::Pointer),
        "integer" => Site::Expression(ValueKind::Integer),
        "constant" => Site::Expression(ValueKind::Constant),
        "do" => Site::Statement,
        _ => return None,
    };
    Some(Idiom { site, template: template.replace("\\n", "\n") })
}

/// The number of idioms.
pub(super) fn count() -> usize {
    IDIOMS.len()
}

/// A kernel into which idioms are inserted.
pub(super) struct IdiomTarget<'a> {
    pub(super) text: &'a str,
    pub(super) typed: &'a [TypedExpression],
    pub(super) places: &'a [ScopedStatement],
    pub(super) style: &'a Style,
}

/// Inserts idiom number `at` at a random place. Returns the span that is replaced, and the new text.
pub(super) fn put(at: usize, ground: &IdiomTarget<'_>, chance: &mut Rng) -> Option<(Span, String)> {
    let idiom = IDIOMS.get(at)?;
    // A random place may lack names that the idiom needs.
    (0..6).find_map(|_| match idiom.site {
        Site::Statement => statement(&idiom.template, ground, chance),
        Site::Expression(kind) => expression(&idiom.template, kind, ground, chance),
    })
}

fn pick<'a, T>(items: &'a [T], chance: &mut Rng) -> Option<&'a T> {
    items.get(chance.below(items.len() as u64) as usize)
}

fn statement(template: &str, ground: &IdiomTarget<'_>, chance: &mut Rng) -> Option<(Span, String)> {
    let place = pick(ground.places, chance)?;
    let line = ground.text[..place.stmt.start].rfind('\n').map_or(0, |at| at + 1);
    let indent = &ground.text[line..place.stmt.start];
    if !indent.trim().is_empty() {
        return None;
    }
    let words = words(template, None, &place.names, ground.style, chance)?;
    let end = place.stmt.end;
    Some((Span::new(end, end), format!("\n{indent}{}", words.replace('\n', &format!("\n{indent}")))))
}

fn expression(template: &str, kind: ValueKind, ground: &IdiomTarget<'_>, chance: &mut Rng) -> Option<(Span, String)> {
    let body = Span::new(ground.places.first()?.stmt.start, ground.places.last()?.stmt.end);
    let sites: Vec<Span> = if kind == ValueKind::Constant {
        let names: Vec<&ScopedName> = ground.places[0].names.iter().filter(|name| name.kind == kind).collect();
        let uses = names.iter().flat_map(|name| ground.text.match_indices(name.text.as_str()));
        let uses = uses.map(|(at, word)| Span::new(at, at + word.len()));
        uses.filter(|span| body.contains(*span) && is_word(ground.text, *span)).collect()
    } else {
        let of_kind =
            |(span, ty): &&TypedExpression| body.contains(*span) && kind_of(ty).is_some_and(|(one, _)| one == kind);
        ground.typed.iter().filter(of_kind).map(|(span, _)| *span).collect()
    };
    let span = *pick(&sites, chance)?;
    let place = ground.places.iter().rev().find(|place| place.stmt.end <= span.start)?;
    let text = ground.text.get(span.start..span.end)?;
    let is_atom = text.chars().all(|c| c.is_alphanumeric() || "_.".contains(c)) || text.ends_with([')', ']']);
    let expression = if is_atom { text.to_owned() } else { format!("({text})") };
    Some((span, words(template, Some(&expression), &place.names, ground.style, chance)?))
}

fn is_word(text: &str, span: Span) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !text[..span.start].ends_with(is_part) && !text[span.end..].starts_with(is_part)
}

/// The template filled with names that are in scope, with tiles of the same shape where possible.
fn words(
    template: &str,
    expression: Option<&str>,
    names: &[ScopedName],
    style: &Style,
    chance: &mut Rng,
) -> Option<String> {
    let tiles: Vec<&ScopedName> =
        names.iter().filter(|name| !name.shape.is_empty() && name.kind != ValueKind::Bool).collect();
    let shape = pick(&tiles, chance).map_or("", |name| name.shape.as_str());
    let mut chosen: Vec<(String, String)> = Vec::new();
    filled(template, |role| {
        if role == "e" {
            return expression.map(str::to_owned);
        }
        if let Some((_, name)) = chosen.iter().find(|(known, _)| known == role) {
            return Some(name.clone());
        }
        let of = |kind: ValueKind, fits: &dyn Fn(&ScopedName) -> bool, chance: &mut Rng| {
            let all: Vec<&ScopedName> = names.iter().filter(|name| name.kind == kind && fits(name)).collect();
            let alike: Vec<&ScopedName> = all.iter().filter(|name| name.shape == shape).copied().collect();
            pick(if alike.is_empty() { &all } else { &alike }, chance).map(|name| name.text.clone())
        };
        let any = |_: &ScopedName| true;
        let name = match role {
            "tl" => Some(style.language.to_owned()),
            "v" | "u" => of(ValueKind::Float, &any, chance),
            "d" => of(ValueKind::Float, &|name| name.shape.contains(','), chance),
            "o" => of(ValueKind::Int, &any, chance),
            "q" => of(ValueKind::Bool, &any, chance),
            "n" => of(ValueKind::Integer, &any, chance),
            "s" => of(ValueKind::Real, &any, chance),
            "p" => of(ValueKind::Pointer, &any, chance),
            "C" => of(ValueKind::Constant, &any, chance),
            _ => None,
        }?;
        chosen.push((role.to_owned(), name.clone()));
        Some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_is_an_idiom() {
        let lines = include_str!("idioms.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            assert!(idiom(line).is_some(), "{line}");
        }
        assert!(count() > 900);
    }
}
