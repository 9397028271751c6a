//! Replacement of IPython's magic lines, which are not Python, by valid Python of the same length.

/// Cell magics whose cell is Python nevertheless.
const PYTHON_CELLS: [&str; 4] = ["%%time", "%%timeit", "%%capture", "%%prun"];

/// `text` with magic lines (`%m`, `!m`, `x = !m`, `m?`) replaced by `0` and spaces; its length in bytes stays the
/// same. A cell that belongs to another language (`%%bash`) becomes blank.
pub(crate) fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    if let Some(magic) = text.split_whitespace().next().filter(|word| word.starts_with("%%"))
        && !PYTHON_CELLS.contains(&magic)
    {
        push_blank(&mut out, text.bytes());
        return out;
    }
    let mut state = State::default();
    for line in text.split_inclusive('\n') {
        let magic =
            if state.magic_goes_on { Some(0) } else { state.is_statement_start().then(|| start(line)).flatten() };
        match magic {
            Some(at) => {
                out.push_str(&line[..at]);
                // An expression is needed in its place: an empty block is an error, and so is `x = `.
                let goes_on = state.magic_goes_on;
                out.push_str(if goes_on { "" } else { "0" });
                push_blank(&mut out, line.bytes().skip(at + usize::from(!goes_on)));
                state.magic_goes_on = line.trim_end().ends_with('\\');
            }
            None => {
                state.read(line);
                out.push_str(line);
            }
        }
    }
    out
}

/// The start of a line's magic: at the line's first character, or after `=`.
fn start(line: &str) -> Option<usize> {
    let code = line.trim_start();
    let indent = line.len() - code.len();
    if code.starts_with(['%', '!', '?']) {
        return Some(indent);
    }
    let trimmed = code.trim_end();
    if trimmed.ends_with('?') && !trimmed.contains(['#', '"', '\'']) {
        return Some(indent);
    }
    let (target, value) = code.split_once('=')?;
    let name = target.trim();
    let is_target = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_., ".contains(c));
    let at = line.len() - value.trim_start().len();
    (is_target && value.trim_start().starts_with(['%', '!'])).then_some(at)
}

fn push_blank(out: &mut String, bytes: impl Iterator<Item = u8>) {
    out.extend(bytes.map(|byte| if byte == b'\n' || byte == b'\r' { char::from(byte) } else { ' ' }));
}

/// A scanner that knows whether a line begins a statement, from brackets, strings and backslashes.
#[derive(Default)]
struct State {
    depth: usize,
    triple: Option<char>,
    continued: bool,
    magic_goes_on: bool,
}

impl State {
    fn is_statement_start(&self) -> bool {
        self.depth == 0 && self.triple.is_none() && !self.continued
    }

    fn read(&mut self, line: &str) {
        let mut quote = None;
        let mut rest = line.trim_end_matches(['\n', '\r']).chars();
        self.continued = false;
        while let Some(c) = rest.next() {
            let triple = |q: char| rest.as_str().starts_with(&[q, q][..].iter().collect::<String>());
            match (c, self.triple.or(quote)) {
                ('\\', Some(_)) => drop(rest.next()),
                ('\\', None) => self.continued = rest.as_str().is_empty(),
                (q, Some(open)) if q == open => {
                    if self.triple.is_none() {
                        quote = None;
                    } else if triple(q) {
                        self.triple = None;
                        rest.nth(1);
                    }
                }
                ('#', None) => return,
                (q @ ('"' | '\''), None) => {
                    if triple(q) {
                        self.triple = Some(q);
                        rest.nth(1);
                    } else {
                        quote = Some(q);
                    }
                }
                ('(' | '[' | '{', None) => self.depth += 1,
                (')' | ']' | '}', None) => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_lines_are_replaced_by_valid_python_of_equal_length() {
        for (text, expected) in [
            ("%time f()\nx = 1\n", "0        \nx = 1\n"),
            ("if x:\n    !pip install é\n", "if x:\n    0              \n"),
            ("files = !ls *.py\n", "files = 0       \n"),
            ("a, b = %sx ls\n", "a, b = 0     \n"),
            ("tl.load?\n??tl\né?\n", "0       \n0   \n0  \n"),
            ("!ls \\\n  -l\nx\n", "0    \n    \nx\n"),
            ("%%bash\nls (\n", "      \n    \n"),
            ("%%time\nx = (1\n", "0     \nx = (1\n"),
        ] {
            assert_eq!(blank(text), expected, "{text:?}");
            assert_eq!(blank(text).len(), text.len());
        }
    }

    #[test]
    fn python_lines_that_resemble_magics_are_unchanged() {
        for text in [
            "x = (a\n     % b)\n",
            "x = a \\\n  % b\n",
            "s = '''\n%d\n!\n'''\n",
            "s = \"it's\"\nx != y\n",
            "x == y\nx = y % 2\n",
            "t = 'what?'\n# what?\n",
            "s = \"\"\"a\\\"\"\"\"\n",
            "f(x, fmt='%d')\n",
        ] {
            assert_eq!(blank(text), text);
        }
    }
}
