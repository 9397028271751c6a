//! Detection of what must not be sent to a model: files that git ignores, and text that looks like a secret.

use std::path::Path;
use std::sync::LazyLock;

use ignore::Match;
use ignore::gitignore::GitignoreBuilder;
use regex::Regex;

/// Patterns of secrets with their names. Patterns that occur in kernels are left out.
static SHAPES: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let shapes = [
        ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY"),
        ("a key of Amazon's", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
        ("a token of GitHub's", r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{40,})\b"),
        ("a token of GitLab's", r"\bglpat-[A-Za-z0-9_-]{20,}"),
        ("a token of Hugging Face's", r"\bhf_[A-Za-z0-9]{30,}\b"),
        ("a key of a language model's provider", r"\bsk-[A-Za-z0-9_-]{20,}"),
        ("a key of Google's", r"\bAIza[0-9A-Za-z_-]{35}\b"),
        ("a token of Slack's", r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
        ("a web token", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
        ("an address with a password", r"[a-z][a-z0-9+.-]*://[^\s/:@'\x22]+:[^\s/@'\x22]+@"),
        (
            "a password",
            r#"(?i)(?:\b|_)(?:password|passwd|secret|api_?key|access_?key|auth_?token|access_?token)\w*\s*[:=]\s*['"][^'"\s]{6,}['"]"#,
        ),
    ];
    let compiled = shapes.into_iter().filter_map(|(name, shape)| Some((name, Regex::new(shape).ok()?)));
    compiled.collect()
});

/// The first part of a text that looks like a secret: its line, counted from 1, and the name of the pattern. The
/// secret itself is not returned.
pub(super) fn secret(text: &str) -> Option<(usize, &'static str)> {
    let found = SHAPES.iter().filter_map(|(name, shape)| Some((shape.find(text)?.start(), *name)));
    let (at, name) = found.min_by_key(|(at, _)| *at)?;
    Some((text[..at].matches('\n').count() + 1, name))
}

/// Whether git ignores a file, which is then not sent to a model either. A file counts as ignored when that cannot
/// be determined.
pub(super) fn is_ignored(file: &Path) -> bool {
    let Ok(file) = file.canonicalize() else { return true };
    // The rules of the whole repository apply, even if the workspace is a part of it.
    let folders: Vec<&Path> = file.ancestors().skip(1).collect();
    let root = folders.iter().position(|folder| folder.join(".git").exists()).unwrap_or(0);
    let mut is_ignored = false;
    // The rules of deeper folders override those above.
    for folder in folders.iter().take(root + 1).rev() {
        let mut rules = GitignoreBuilder::new(folder);
        for name in [".git/info/exclude", ".gitignore", ".warpsmithignore"] {
            if folder.join(name).is_file() && rules.add(folder.join(name)).is_some() {
                return true;
            }
        }
        let Ok(rules) = rules.build() else { return true };
        match rules.matched_path_or_any_parents(&file, false) {
            Match::Ignore(_) => is_ignored = true,
            Match::Whitelist(_) => is_ignored = false,
            Match::None => {}
        }
    }
    is_ignored
}

/// The text without the folders in its paths, which would reveal more about the machine than the recipient needs.
pub(super) fn without_folders(text: &str) -> String {
    static FOLDERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:/[\w.@+~%-]+){2,}/").ok());
    FOLDERS.as_ref().map_or_else(String::new, |folders| folders.replace_all(text, "").into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_secret_patterns_compile() {
        assert_eq!(SHAPES.len(), 11);
    }

    #[test]
    fn secrets_are_found_and_named_by_line_only() {
        let long = "0123456789abcdefghijABCDEFGHIJ0123456789";
        for (line, name) in [
            (format!("key = 'sk-{long}'"), "a key of a language model's provider"),
            (format!("TOKEN = 'ghp_{long}'"), "a token of GitHub's"),
            (format!("x = 'hf_{long}'"), "a token of Hugging Face's"),
            ("aws = 'AKIAIOSFODNN7EXAMPLE'".to_owned(), "a key of Amazon's"),
            ("-----BEGIN RSA PRIVATE KEY-----".to_owned(), "a private key"),
            ("url = 'postgres://me:hunter22@db/x'".to_owned(), "an address with a password"),
            ("db_password = 'hunter22'".to_owned(), "a password"),
            ("API_KEY = 'abcdef123'".to_owned(), "a password"),
        ] {
            assert_eq!(secret(&format!("import triton\n\n{line}\n")), Some((3, name)), "{line}");
        }
    }

    #[test]
    fn example_kernels_contain_no_secrets() {
        let mut seen = 0;
        for folder in ["examples", "tests/gpu/optimize"] {
            for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "py") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert_eq!(secret(&text), None, "{}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 15, "{seen}");
    }

    #[test]
    fn files_that_git_ignores_are_detected() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for inside in [".git", "private/deep", "open/part"] {
            std::fs::create_dir_all(root.join(inside)).unwrap();
        }
        std::fs::write(root.join(".gitignore"), "private/\nopen/*.local.py\nlink.py\n").unwrap();
        std::fs::write(root.join("open/.warpsmithignore"), "hidden.py\n/part/own.py\n!loud.local.py\n").unwrap();
        let is_ignored = |file: &str| {
            std::fs::write(root.join(file), "").unwrap();
            super::is_ignored(&root.join(file))
        };
        assert!(is_ignored("private/deep/k.py") && is_ignored("open/a.local.py") && is_ignored("open/hidden.py"));
        assert!(is_ignored("open/part/own.py") && !is_ignored("open/loud.local.py"));
        assert!(is_ignored("open/part/hidden.py") && !is_ignored("open/part/k.py"));
        assert!(!is_ignored("open/k.py") && !is_ignored("k.py"));
        assert!(super::is_ignored(Path::new("/elsewhere/k.py")), "what is not there cannot be told");
        std::fs::write(root.join(".gitignore"), "[a-\n").unwrap();
        let _ = is_ignored("k.py");
    }

    #[test]
    fn folders_are_removed_from_messages() {
        let text = "  File \"/a/b.c/lib-64/triton/jit.py\", line 3\n  a / b, x//y, 3/4";
        let expected = "  File \"jit.py\", line 3\n  a / b, x//y, 3/4";
        assert_eq!(without_folders(text), expected);
    }
}
