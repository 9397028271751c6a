//! The excerpt of a file that a model sees (the kernels, the function that launches them, and what these need), and
//! the merge of the model's version back into the file.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tree_sitter::Node;

use config::Sent;
use model::syntax::{Source, field};
use workload::identifiers;

/// An excerpt of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Excerpt {
    /// The text of the excerpt.
    pub(super) text: String,
    /// The statements that it consists of.
    parts: Vec<Part>,
}

/// A top-level statement, with the comments directly above it.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    span: Range<usize>,
    /// A key: the kind of the statement and what it defines, or its text.
    key: String,
    /// The index among the statements with the same key.
    turn: usize,
    is_import: bool,
}

/// A statement, with the names that it binds and uses.
struct Statement<'t> {
    part: Part,
    binds: HashSet<&'t str>,
    names: HashSet<&'t str>,
}

/// The parts of the user's file that are shown to no model, even if a candidate names them.
#[derive(Clone, Debug, Default)]
pub(super) struct Hidden {
    keys: HashSet<String>,
    texts: HashSet<String>,
}

impl Hidden {
    /// The parts of the user's file that an excerpt leaves out.
    pub(super) fn of(file: &str, excerpt: &Excerpt) -> Self {
        let is_shown = |part: &Part| excerpt.parts.iter().any(|shown| shown.span == part.span);
        let mut hidden = Self::default();
        for Statement { part, .. } in statements(file).into_iter().filter(|one| !is_shown(&one.part)) {
            hidden.texts.insert(file[part.span.clone()].to_owned());
            hidden.keys.insert(part.key);
        }
        hidden.keys.retain(|key| excerpt.parts.iter().all(|part| part.key != *key));
        hidden
    }

    fn has(&self, text: &str, part: &Part) -> bool {
        self.keys.contains(&part.key) || self.texts.contains(&text[part.span.clone()])
    }
}

impl Excerpt {
    /// The part of `text` that may be sent when `entry` and `kernels` are optimized.
    pub(super) fn of(text: &str, entry: &str, kernels: &[String], sent: Sent, hidden: &Hidden) -> Self {
        let statements = statements(text);
        if sent == Sent::File {
            let parts = statements.into_iter().map(|statement| statement.part).collect();
            return Self { text: text.to_owned(), parts };
        }
        let start = entry.split('.').next().unwrap_or(entry);
        let mut reached: HashSet<&str> = kernels.iter().map(String::as_str).chain([start]).collect();
        let mut open: Vec<&str> = reached.iter().copied().collect();
        while let Some(name) = open.pop() {
            for statement in statements.iter().filter(|statement| statement.binds.contains(name)) {
                open.extend(statement.names.iter().filter(|name| reached.insert(name)));
            }
        }
        // A comment may describe the launch of a kernel.
        let is_of_launch =
            |part: &Part| part.key.starts_with('#') && kernels.iter().any(|name| part.key.contains(name));
        let is_needed =
            |one: &Statement<'_>| one.binds.iter().any(|name| reached.contains(name)) || is_of_launch(&one.part);
        let shown = statements.into_iter().filter(|one| is_needed(one) && !hidden.has(text, &one.part));
        let parts: Vec<Part> = shown.map(|statement| statement.part).collect();
        Self { text: joined(text, &parts), parts }
    }

    /// A name that `made` defines although the rest of the file defines it already, so that one definition would
    /// replace the other.
    pub(super) fn clash(&self, file: &str, made: &str) -> Option<String> {
        let is_shown = |key: &str| self.parts.iter().any(|part| part.key == key);
        let beside: HashSet<String> = statements(file).into_iter().map(|one| one.part.key).collect();
        let new = statements(made).into_iter().map(|one| one.part);
        let mut clashing = new.filter(|part| !is_shown(&part.key) && beside.contains(&part.key));
        clashing.find_map(|part| {
            let name = part.key.strip_prefix("definition ").or(part.key.strip_prefix("assignment "));
            name.map(str::to_owned)
        })
    }

    /// The file with the model's version `made` in the place of this excerpt. Statements that the model left out
    /// stay, because code that it was not shown may need them.
    pub(super) fn splice(&self, file: &str, made: &str) -> String {
        let mut new = statements(made);
        // Imports that the rest of the file has are not repeated.
        let imported: HashSet<String> = statements(file).into_iter().map(|one| one.part.key).collect();
        let is_known = |one: &Part| self.parts.iter().any(|part| part.is_same(one));
        new.retain(|one| !one.part.is_import || is_known(&one.part) || !imported.contains(&one.part.key));
        let mut out = String::with_capacity(file.len() + made.len());
        let mut written: HashSet<usize> = HashSet::new();
        let mut at = 0;
        for part in &self.parts {
            out.push_str(&file[at..part.span.start]);
            at = part.span.end;
            let Some(place) = new.iter().position(|one| one.part.is_same(part)) else {
                out.push_str(&file[part.span.clone()]);
                continue;
            };
            // A new statement goes before the known statement that followed it in the model's version.
            for (index, one) in new.iter().enumerate().take(place) {
                if !is_known(&one.part) && written.insert(index) {
                    out.push_str(&made[one.part.span.clone()]);
                    out.push_str(if one.part.is_import { "\n" } else { "\n\n\n" });
                }
            }
            out.push_str(&made[new[place].part.span.clone()]);
        }
        for (index, one) in new.iter().enumerate() {
            if !written.contains(&index) && !is_known(&one.part) {
                out.push_str("\n\n\n");
                out.push_str(&made[one.part.span.clone()]);
            }
        }
        out.push_str(&file[at..]);
        out
    }
}

impl Part {
    fn is_same(&self, other: &Self) -> bool {
        self.turn == other.turn && self.key == other.key
    }
}

/// The statements in order, with the blank lines between them, at most two.
fn joined(text: &str, parts: &[Part]) -> String {
    let mut shown = String::new();
    for (index, part) in parts.iter().enumerate() {
        if let Some(before) = index.checked_sub(1).map(|before| &parts[before]) {
            let lines = text[before.span.end..part.span.start].matches('\n').count();
            shown.push_str(if part.is_import && before.is_import { "\n" } else { &"\n\n\n"[..lines.clamp(1, 3)] });
        }
        shown.push_str(&text[part.span.clone()]);
    }
    shown.push('\n');
    shown
}

/// The text of the definition of a name, if the file has exactly one.
pub(super) fn definition<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let key = format!("definition {name}");
    let mut found = statements(text).into_iter().filter(|one| one.part.key == key);
    match (found.next(), found.next()) {
        (Some(one), None) => Some(&text[one.part.span]),
        _ => None,
    }
}

/// The top-level statements, without those that run only when the file is the program.
fn statements(text: &str) -> Vec<Statement<'_>> {
    let source = Source::parse(text);
    let mut found: Vec<Statement<'_>> = Vec::new();
    // The comments directly above the next statement.
    let mut above: Option<Range<usize>> = None;
    for root in source.roots() {
        let mut cursor = root.walk();
        for node in root.named_children(&mut cursor) {
            let span = node.byte_range();
            let is_close = |above: &Range<usize>| text[above.end..span.start].matches('\n').count() <= 1;
            let is_beside = |last: &Statement<'_>| !text[last.part.span.end..span.start].contains('\n');
            if node.kind() == "comment" {
                if text[span.clone()].contains("warpsmith: workload") {
                    let key = launch_key(&text[span.clone()]);
                    let part = Part { span, key, turn: 0, is_import: false };
                    found.push(Statement { part, binds: HashSet::new(), names: HashSet::new() });
                    above = None;
                } else if let Some(last) = found.last_mut().filter(|last| is_beside(last)) {
                    last.part.span.end = span.end;
                } else {
                    let start = above.take().filter(is_close).map_or(span.start, |above| above.start);
                    above = Some(start..span.end);
                }
                continue;
            }
            let start = above.take().filter(is_close).map_or(span.start, |above| above.start);
            if let Some(mut statement) = statement(node, text) {
                statement.part.span.start = start;
                found.push(statement);
            }
        }
    }
    let mut turns: HashMap<String, usize> = HashMap::new();
    for Statement { part, .. } in &mut found {
        let turn = turns.entry(part.key.clone()).or_default();
        (part.turn, *turn) = (*turn, *turn + 1);
    }
    found
}

/// The key of a launch comment: `#k#` for `# warpsmith: workload entry=k[2] x=f16[16]`, since the rest may be
/// changed.
fn launch_key(comment: &str) -> String {
    let entry = comment.split_once("entry=").map_or("", |(_, rest)| rest);
    format!("#{}#", entry.split(['[', ' ']).next().unwrap_or_default())
}

fn statement<'t>(node: Node<'_>, text: &'t str) -> Option<Statement<'t>> {
    if node.kind() == "if_statement" && text[node.byte_range()].contains("__name__") {
        return None;
    }
    let definition = if node.kind() == "decorated_definition" { field(node, "definition")? } else { node };
    let names = identifiers(node, text);
    let own = |node: Node<'_>| identifiers(node, text);
    let (binds, key) = match definition.kind() {
        "function_definition" | "class_definition" => {
            let name = field(definition, "name")?;
            (own(name), format!("definition {}", &text[name.byte_range()]))
        }
        // `x = 1`, `x: int = 1`
        "expression_statement" => match definition.named_child(0).and_then(|one| Some((one, field(one, "left")?))) {
            Some((inner, left)) if left.kind() == "identifier" => {
                (own(left), format!("{} {}", inner.kind(), &text[left.byte_range()]))
            }
            _ => (names.clone(), text[node.byte_range()].to_owned()),
        },
        // For other statements, the bound names include those that are only used: too many, never too few.
        _ => (names.clone(), text[node.byte_range()].to_owned()),
    };
    let is_import =
        matches!(definition.kind(), "import_statement" | "import_from_statement" | "future_import_statement");
    let part = Part { span: node.byte_range(), key, turn: 0, is_import };
    Some(Statement { part, binds, names })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"import os
import torch
import triton
import triton.language as tl

SECRET_PLACE = os.environ.get("PLACE")
ROWS = 4  # at a time


# Adds one.
@triton.jit
def add(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), ROWS)


def upload(x):
    return SECRET_PLACE, add_one(x)


def add_one(x):
    add[(1,)](x, x.numel(), BLOCK=16)
    return x


if __name__ == "__main__":
    add_one(torch.ones(16))
"#;

    fn excerpt(sent: Sent) -> Excerpt {
        Excerpt::of(FILE, "add_one", &["add".to_owned()], sent, &Hidden::default())
    }

    #[test]
    fn only_what_the_kernel_and_its_launch_need_is_shown() {
        let shown = excerpt(Sent::Kernel).text;
        for part in
            ["import triton\n", "ROWS = 4  # at a time", "# Adds one.\n@triton.jit\ndef add(", "def add_one(x):"]
        {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        for part in ["SECRET_PLACE", "upload", "__main__", "import os"] {
            assert!(!shown.contains(part), "{part} in {shown}");
        }
        assert_eq!(excerpt(Sent::File).text, FILE);
    }

    #[test]
    fn splicing_an_unchanged_excerpt_restores_the_file() {
        let excerpt = excerpt(Sent::Kernel);
        assert_eq!(excerpt.splice(FILE, &excerpt.text), FILE);
    }

    #[test]
    fn splicing_places_changed_new_and_removed_statements() {
        let excerpt = excerpt(Sent::Kernel);
        let made = "import math\nimport triton\nimport triton.language as tl\n\n@triton.jit\ndef helper(x):\n    return x\n\n\
                    @triton.jit\ndef add(x, n, BLOCK: tl.constexpr):\n    tl.store(x, helper(4))\n\n\
                    def add_one(x):\n    add[(2,)](x, x.numel(), BLOCK=8)\n    return x\n";
        let file = excerpt.splice(FILE, made);
        for part in [
            "import os\n",
            "import math\nimport triton\n",
            "add[(2,)]",
            "tl.store(x, helper(4))",
            "def upload(x):",
            "__main__",
        ] {
            assert!(file.contains(part), "{part} in\n{file}");
        }
        assert!(file.contains("ROWS = 4"), "something may need it:\n{file}");
        assert!(file.find("def helper") < file.find("def add("), "{file}");
        assert_eq!(file.matches("def add(").count(), 1);
    }

    #[test]
    fn statements_of_one_name_keep_their_places() {
        let file = "import triton\nconfigs = [1]\nconfigs += [2]\n\ndef k(x):\n    return configs\n\nk = triton.jit(k)\n\n\
                    try:\n    import a\n    HAS_A = True\nexcept ImportError:\n    HAS_A = False\n\ndef f(x):\n    return k(x), HAS_A\n";
        let excerpt = Excerpt::of(file, "f", &["k".to_owned()], Sent::Kernel, &Hidden::default());
        assert_eq!(excerpt.splice(file, &excerpt.text), file);
        let made = "import a\n\ndef k(x):\n    return 1\n\ndef f(x):\n    return k(x)\n";
        let back = excerpt.splice(file, made);
        for part in ["configs = [1]\nconfigs += [2]\n", "k = triton.jit(k)", "HAS_A = False", "return 1"] {
            assert!(back.contains(part), "{part} in\n{back}");
        }
        assert_eq!(back.matches("def k(").count(), 1, "{back}");
        // A file that is sent as a whole is replaced as a whole.
        let whole = Excerpt::of(file, "f", &["k".to_owned()], Sent::File, &Hidden::default());
        assert!(whole.splice(file, made).contains("HAS_A = False"));
    }

    /// A candidate may name other parts of the user's file; they are not shown because of that.
    #[test]
    fn a_candidate_that_names_hidden_code_does_not_reveal_it() {
        let excerpt = excerpt(Sent::Kernel);
        let hidden = Hidden::of(FILE, &excerpt);
        for naming in ["    PLACE = SECRET_PLACE\n    return x", "    upload(x)\n    return x"] {
            let candidate = FILE.replace("    return x\n", &format!("{naming}\n"));
            let kernels = ["add".to_owned()];
            let careless = Excerpt::of(&candidate, "add_one", &kernels, Sent::Kernel, &Hidden::default());
            assert!(careless.text.contains("os.environ"), "{}", careless.text);
            let careful = Excerpt::of(&candidate, "add_one", &kernels, Sent::Kernel, &hidden);
            assert!(!careful.text.contains("os.environ") && careful.text.contains("def add("), "{}", careful.text);
        }
        let doubled = FILE
            .replace("SECRET_PLACE = os", "SECRET_PLACE = 1\nSECRET_PLACE = os")
            .replace("x.numel()", "SECRET_PLACE");
        let shown = Excerpt::of(&doubled, "add_one", &["add".to_owned()], Sent::Kernel, &hidden);
        assert!(!shown.text.contains("os.environ"), "{}", shown.text);
    }

    #[test]
    fn splicing_does_not_duplicate_imports_and_reports_clashes() {
        let excerpt = excerpt(Sent::Kernel);
        let made = format!("import os\n{}", excerpt.text);
        assert_eq!(excerpt.splice(FILE, &made), FILE);
        assert_eq!(excerpt.clash(FILE, &made), None);
        let clashing = excerpt.text.replace("def add_one", "def upload(x):\n    return x\n\ndef add_one");
        assert_eq!(excerpt.clash(FILE, &clashing).as_deref(), Some("upload"));
    }

    #[test]
    fn a_comment_that_launches_the_kernel_is_shown() {
        let file = "import triton\n# warpsmith: workload entry=k[2] x=f16[16] BLOCK=8\n@triton.jit\ndef k(x, BLOCK):\n    pass\n";
        let shown = Excerpt::of(file, "k", &["k".to_owned()], Sent::Kernel, &Hidden::default());
        assert!(shown.text.contains("entry=k[2]") && shown.text.contains("def k"), "{}", shown.text);
        let made = shown.text.replace("BLOCK=8", "BLOCK=16");
        let back = shown.splice(file, &made);
        assert!(back.contains("BLOCK=16") && !back.contains("BLOCK=8"), "{back}");
    }
}
