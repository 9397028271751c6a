//! Guards for larger tiles in kernels without masks: `128 if n % 128 == 0 else 64`.

use model::kernel::ast::{Expr, ExprKind, Stmt, walk_statements};
use model::kernel::{HostFunction, Kernel, Launch, Module, Param};
use model::syntax::Span;
use rules::Edit;

use super::conditional_tile::choice;
use super::grid_tiles::is_free;
use super::launched::passed_for;
use super::unmasked;
use super::words::{fresh, indent_of};
use super::written::{bindings, grid_of, is_settled, is_steady};

/// The sizes that a larger tile must divide, and the tile that is used where it does not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Guard {
    /// The sizes, as expressions of the host function.
    sizes: Vec<String>,
    otherwise: i64,
    named: Option<Named>,
}

/// A name for a number that occurs in several places.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    name: String,
    /// The start of the statement before which the name is assigned.
    at: usize,
    indent: String,
}

/// A tile size of a launch.
pub(super) struct LaunchTile<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) launch: &'a Launch,
    pub(super) param: &'a str,
    pub(super) current: i64,
}

impl Guard {
    /// The guard of a tile; `None` where masks make it unnecessary, or where it is unknown what the tile divides.
    pub(super) fn of(module: &Module, text: &str, tile: &LaunchTile<'_>, spans: &[Span]) -> Option<Self> {
        let host = &module.hosts[tile.launch.host?];
        let first = *spans.first()?;
        if let [only] = spans
            && let Some((sizes, otherwise)) = read(module, tile.launch, *only)
        {
            let sizes = sizes.into_iter().map(|size| said(text, size)).collect();
            return Some(Self { sizes, otherwise, named: None });
        }
        let stmt = host.body.iter().find(|stmt| stmt.span.contains(first))?;
        let is_within = |span: &Span| host.body.iter().any(|stmt| stmt.span.contains(*span));
        if !spans.iter().all(is_within) {
            return None;
        }
        let mut sizes: Vec<String> = Vec::new();
        for size in unmasked::divided(module, tile.kernel, tile.launch, tile.param, tile.current) {
            let is_known = is_steady(size) && is_settled(host, size, stmt.span.start) && is_bound(host, size, stmt);
            let size_said = said(text, size);
            if !is_known || size_said.contains('\n') {
                return None;
            }
            if size.as_int().is_none() && !sizes.contains(&size_said) {
                sizes.push(size_said);
            }
        }
        let named = match spans {
            [_] => None,
            _ => {
                let name = free_name(module, host, text, tile.param);
                Some(Named { name, at: stmt.span.start, indent: indent_of(text, stmt.span.start)?.to_owned() })
            }
        };
        (!sizes.is_empty()).then_some(Self { sizes, otherwise: tile.current, named })
    }

    /// The guard of a tile whose size is a constant of the file, and the places of its name that need their own value:
    /// the argument, and the grid.
    pub(super) fn of_global(module: &Module, text: &str, tile: &LaunchTile<'_>) -> Option<(Vec<Span>, Self)> {
        let host = &module.hosts[tile.launch.host?];
        let LaunchTile { kernel, launch, param, .. } = *tile;
        let passed = passed_for(kernel, launch, param)?;
        let name = passed.as_name()?;
        let is_global = bindings(&host.body, name).is_empty() && !host.params.iter().any(|param| param == name);
        let is_other = |other: &&Param| other.name != param && other.constexpr && !is_free(module, kernel, &other.name);
        let mut others = kernel.params.iter().filter(is_other);
        let is_shared =
            others.any(|other| passed_for(kernel, launch, &other.name).and_then(Expr::as_name) == Some(name));
        let mut spans = vec![passed.span];
        if let Some(grid) = grid_of(module, launch).filter(|_| !is_free(module, kernel, param)) {
            grid.walk(&mut |part| spans.extend((part.as_name() == Some(name)).then_some(part.span)));
        }
        spans.sort_unstable();
        let guard = Self::of(module, text, tile, &spans).filter(|_| is_global && !is_shared)?;
        Some((spans, guard))
    }

    /// Makes this tile the fallback, and no smaller one, where a size is not a multiple.
    pub(super) fn is_right_up_to(&mut self, tile: i64) {
        self.otherwise = self.otherwise.max(tile);
    }

    /// Whether the tile needs the guard, because not all sizes are multiples of it.
    pub(super) fn is_chosen(&self, tile: i64) -> bool {
        tile > self.otherwise
    }

    /// The expression for another tile size, and a statement to precede it if one is needed. A smaller tile divides
    /// whatever the fallback divides.
    pub(super) fn written(&self, tile: i64) -> (String, Option<Edit>) {
        if !self.is_chosen(tile) {
            return (tile.to_string(), None);
        }
        let tests: Vec<String> = self.sizes.iter().map(|size| format!("{size} % {tile} == 0")).collect();
        let value = format!("{tile} if {} else {}", tests.join(" and "), self.otherwise);
        match &self.named {
            None => (value, None),
            Some(Named { name, at, indent }) => {
                let text = format!("{name} = {value}\n{indent}");
                (name.clone(), Some(Edit { span: Span::new(*at, *at), text }))
            }
        }
    }
}

/// The sizes and the fallback of an existing `128 if n % 128 == 0 else 64`.
fn read<'a>(module: &'a Module, launch: &'a Launch, span: Span) -> Option<(Vec<&'a Expr>, i64)> {
    let mut found = None;
    walk_statements(&module.hosts[launch.host?].body, &mut |stmt| {
        stmt.exprs().iter().for_each(|expr| {
            expr.walk(&mut |part| found = found.take().or_else(|| choice(part).filter(|_| part.span == span)));
        });
    });
    found.map(|(_, sizes, otherwise)| (sizes, otherwise))
}

/// A size as it is in the text, in parentheses where it needs them as a dividend.
fn said(text: &str, size: &Expr) -> String {
    let said = &text[size.span.start..size.span.end];
    match &size.kind {
        ExprKind::Binary { .. } | ExprKind::Unary { .. } => format!("({said})"),
        _ => said.to_owned(),
    }
}

/// Whether all names of an expression are bound before a statement begins.
fn is_bound(host: &HostFunction, size: &Expr, stmt: &Stmt) -> bool {
    let mut is_bound = true;
    size.walk(&mut |part| {
        let Some(name) = part.as_name() else { return };
        let all = bindings(&host.body, name);
        let is_before = all.iter().any(|one| one.span.end <= stmt.span.start);
        is_bound &= all.is_empty() || is_before || host.params.iter().any(|param| param == name);
    });
    is_bound
}

/// A name for the tile that the function does not use yet, that of the parameter if possible.
fn free_name(module: &Module, host: &HostFunction, text: &str, param: &str) -> String {
    let mut is_used = host.params.iter().any(|one| one == param) || module.bindings.contains_key(param);
    walk_statements(&host.body, &mut |stmt| {
        is_used |= stmt.exprs().iter().any(|expr| expr.mentions(param));
    });
    if is_used { fresh(text, param) } else { param.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::tile_sizes::TileSizes;
    use super::super::turned::turned_by;
    use crate::candidate::Candidate;
    use crate::subject::Subject;
    use protocol::Workload;

    const HEAD: &str = "import triton
import triton.language as tl
@triton.jit
def rounds(total, pointers, stride, n, B: tl.constexpr):
    for start in range(0, n, B):
        total += tl.sum(tl.load(pointers + start * stride), 0)
    return total
@triton.jit
def k(x, y, n, A: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * A + tl.arange(0, A)
    pointers = x + rows[None, :] * n + tl.arange(0, B)[:, None]
    total = rounds(tl.zeros((A,), dtype=tl.float32), pointers, 1, n, B)
    tl.store(y + rows, total)
";

    const HOST: &str = "def run(x, y):
    m, n = x.shape
    k[(triton.cdiv(m, 64),)](x, y, n, A=64, B=32)
";

    /// The lines of the host function that proposals for larger tiles change.
    fn greater(head: &str, host: &str) -> Vec<String> {
        let lines = |text: &str| -> Vec<String> {
            let new = text[text.find("def run").unwrap()..].lines().filter(|line| !host.contains(*line));
            new.map(|line| line.trim().to_owned()).collect()
        };
        let all = turned_by(&TileSizes, &format!("{head}{host}"));
        all.iter()
            .map(|text| lines(text).join("; "))
            .filter(|lines| ["128", "256", "A=64, B=64"].iter().any(|tile| lines.contains(tile)))
            .collect()
    }

    #[test]
    fn an_unmasked_tile_grows_only_if_it_divides_the_size() {
        let launch = "k[(triton.cdiv(m, A),)](x, y, n, A=A, B=32)";
        assert_eq!(
            greater(HEAD, HOST),
            [
                format!("A = 128 if m % 128 == 0 else 64; {launch}"),
                format!("A = 256 if m % 256 == 0 else 64; {launch}"),
                "k[(triton.cdiv(m, 64),)](x, y, n, A=64, B=64 if n % 64 == 0 else 32)".to_owned(),
                "k[(triton.cdiv(m, 64),)](x, y, n, A=64, B=128 if n % 128 == 0 else 32)".to_owned(),
            ]
        );
    }

    #[test]
    fn an_existing_guarded_tile_can_change_further() {
        let host = HOST.replace("B=32", "B=64 if n % 64 == 0 else 32");
        let all = turned_by(&TileSizes, &format!("{HEAD}{host}"));
        let of_b: Vec<&str> =
            all.iter().filter_map(|text| text.split("A=64, B=").nth(1)?.strip_suffix(")\n")).collect();
        assert_eq!(of_b, ["128 if n % 128 == 0 else 32", "32", "256 if n % 256 == 0 else 32", "16"]);
    }

    #[test]
    fn the_fallback_of_a_guard_is_the_users_tile() {
        let text = format!("{HEAD}{HOST}");
        let (workload, user) =
            (Workload { entry: "run".to_owned(), ..Workload::default() }, Candidate::original(&text));
        let turned = |candidate: &Candidate, to: i64| {
            let subject = Subject::new(candidate, &text, "k", &workload).unwrap();
            let setting = subject.knobs.iter().map(|knob| if knob.name == "A" { to } else { knob.current }).collect();
            let turn = subject.turn("A", &setting);
            candidate.with(&turn.edits, &turn.changes)
        };
        let less = turned(&user, 32);
        assert!(less.text.contains("A=32"), "{}", less.text);
        assert!(turned(&less, 128).text.contains("A = 128 if m % 128 == 0 else 64"));
        assert_eq!(
            turned(&turned(&user, 128), 64).text,
            text.replace("(m, 64)", "(m, A)").replace("A=64", "A=A").replace("    k[", "    A = 64\n    k[")
        );
    }

    #[test]
    fn masks_decide_whether_a_tile_needs_a_guard() {
        let head = |body: &str| {
            format!(
                "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x, y, n, A: tl.constexpr):\n    at = tl.program_id(0) * A + tl.arange(0, A)\n{body}\n"
            )
        };
        let host = "def run(x, y):\n    n = x.numel()\n    k[(n // 64,)](x, y, n, A=64)\n";
        let is_guarded = |body: &str, host: &str| {
            let all = greater(&head(body), host);
            assert_eq!(all.len(), 2, "{body}");
            let count = all
                .iter()
                .filter(|lines| lines.contains("A = 128 if n % 128 == 0 else 64") || lines.contains("A = 256 if "))
                .count();
            assert!(count == 0 || count == 2, "{all:?}");
            count > 0
        };
        for body in [
            "    tl.store(y + at, tl.load(x + at))",
            "    tl.store(y + at, tl.load(x + at), mask=at < n)",
            "    tl.store(y + at, 1.0, mask=n > 7)",
            "    it = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * A,), (A,), (0,))\n    tl.store(it, 1.0)",
        ] {
            assert!(is_guarded(body, host), "{body}");
        }
        for body in [
            "    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)",
            "    is_in = at < n\n    tl.store(y + at, tl.load(x + at, is_in), is_in)",
            // Wrapped indices never exceed the size.
            "    again = at % n\n    tl.store(y + again, tl.load(x + again))",
            "    it = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * A,), (A,), (0,))\n    tl.store(it, 1.0, boundary_check=(0,))",
        ] {
            assert!(!is_guarded(body, host), "{body}");
        }
        // The size is not bound yet at the number.
        let above =
            host.replace("    n =", "    tile = 64\n    n =").replace("A=64", "A=tile").replace("// 64", "// tile");
        assert!(!is_guarded("    tl.store(y + at, 1.0)", &above));
    }

    #[test]
    fn a_guarded_constant_of_the_file_is_not_changed() {
        let host = HOST.replace("m, 64", "m, TILE").replace("A=64", "A=TILE");
        let all = greater(&HEAD.replace("@triton.jit\ndef k", "TILE = 64\n@triton.jit\ndef k"), &host);
        assert_eq!(all[0], "A = 128 if m % 128 == 0 else 64; k[(triton.cdiv(m, A),)](x, y, n, A=A, B=32)");
    }

    #[test]
    fn a_guarded_tile_in_a_dictionary_changes_in_place() {
        for dictionary in ["dict(A=64, B=32)", "{'A': 64, 'B': 32}"] {
            let host = HOST.replace("A=64, B=32", "**both").replace("m, 64", "m, both['A']");
            let host = host.replace("    k[", &format!("    both = {dictionary}\n    k["));
            let all = greater(HEAD, &host);
            assert_eq!(all[0], format!("both = {}", dictionary.replace("64", "128 if m % 128 == 0 else 64")));
            assert!(all[2].contains("if n %"), "{all:?}");
        }
    }

    #[test]
    fn two_tiles_with_one_name_change_separately() {
        let host = HOST
            .replace("    k[", "    tile = 64\n    k[")
            .replace("A=64, B=32", "A=tile, B=tile")
            .replace("m, 64", "m, tile");
        let all = greater(HEAD, &host);
        assert_eq!(
            all,
            [
                "tile = 128 if m % 128 == 0 else 64",
                "tile = 256 if m % 256 == 0 else 64",
                "k[(triton.cdiv(m, tile),)](x, y, n, A=tile, B=128 if n % 128 == 0 else 64)",
                "k[(triton.cdiv(m, tile),)](x, y, n, A=tile, B=256 if n % 256 == 0 else 64)",
            ]
        );
    }
}
