//! Uses of kernels outside of the launches that a search may change. Such a kernel must keep its behaviour.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::kernel::{GlobalBinding, Module};
use model::syntax::Source;

/// Bytes of Python files that are scanned. In larger workspaces all kernels count as used elsewhere.
const MOST: u64 = 512 << 20;

/// The kernels of a file that are used elsewhere, with the user of each: another file of the workspace, or another
/// kernel.
pub(super) fn external_uses(
    workspace: &Path,
    file: &Path,
    module: &Module,
    kernels: &[String],
) -> BTreeMap<String, String> {
    let mut used: BTreeMap<String, String> = BTreeMap::new();
    for kernel in kernels.iter().filter(|kernel| module.called_in_kernels().contains(*kernel)) {
        used.insert(kernel.clone(), "another kernel of the file".to_owned());
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // A package is imported by the name of its folder.
    let folder = file.parent().and_then(Path::file_name).filter(|_| stem == "__init__");
    let module_name = folder.map_or(stem, |folder| folder.to_string_lossy().into_owned());
    let mut size = 0;
    for path in other_files(workspace, file) {
        size += path.metadata().map_or(0, |metadata| metadata.len());
        if size > MOST {
            let all = kernels.iter().map(|kernel| (kernel.clone(), "a workspace of this size".to_owned()));
            used.extend(all);
            break;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mentioned = || kernels.iter().filter(|kernel| has_word(&text, kernel));
        if !has_word(&text, &module_name) || mentioned().next().is_none() {
            continue;
        }
        let name = path.strip_prefix(workspace).unwrap_or(&path).display().to_string();
        let other = Module::build(&Source::parse(text.as_str()));
        for kernel in mentioned().filter(|kernel| imports(&other, &text, &module_name, kernel)) {
            used.entry(kernel.clone()).or_insert_with(|| name.clone());
        }
    }
    used
}

/// Whether a file that contains both words imports the kernel from a module of this name, and does not define one
/// of its own.
fn imports(other: &Module, text: &str, module_name: &str, kernel: &str) -> bool {
    let is_import = |binding: &GlobalBinding| {
        let GlobalBinding::Import(path) = binding else { return false };
        let mut parts = path.rsplit('.');
        let (last, before) = (parts.next(), parts.next());
        let is_member = last == Some(kernel) && before == Some(module_name);
        is_member || (last == Some(module_name) && text.contains(&format!(".{kernel}")))
    };
    // Imports within functions and star imports are not among the bindings of a file.
    let is_hidden = |line: &str| {
        let said = line.trim_start();
        (said.starts_with("from ") || said.starts_with("import "))
            && has_word(said, module_name)
            && (said.len() < line.len() || said.trim_end().ends_with('*'))
    };
    let dotted = format!("{module_name}.{kernel}");
    other.bindings.values().any(is_import) || text.contains(&dotted) || text.lines().any(is_hidden)
}

/// The Python files of a workspace except `file`.
pub(super) fn other_files(workspace: &Path, file: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let walk = ignore::WalkBuilder::new(workspace).sort_by_file_path(|a, b| a.cmp(b)).build().flatten();
    let python = walk.map(ignore::DirEntry::into_path).filter(|path| path.extension().is_some_and(|it| it == "py"));
    python.filter(move |path| !path.canonicalize().is_ok_and(|path| path == file))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '_');
    !word.is_empty()
        && text
            .match_indices(word)
            .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_users_of_a_kernel_are_found() {
        let text = "import triton\nimport triton.language as tl\n@triton.jit\ndef helper(x):\n    return x\n\
                    @triton.jit\ndef scale(x):\n    y = helper(x)\n@triton.jit\ndef shift(x):\n    y = x\n";
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("ops.py", text);
        write("same_name.py", "def scale(x):\n    return x\n");
        write("tops.py", "from scales import shift_left\nimport ops\n");
        write("copy.py", "# as in ops\nimport triton\n@triton.jit\ndef shift(x):\n    y = x\n");
        write("bench.py", "from ops import scale\nscale[(1,)](x)\n");
        let module = Module::build(&Source::parse(text));
        let kernels = ["helper", "scale", "shift"].map(str::to_owned);
        let used = external_uses(folder.path(), &folder.path().join("ops.py"), &module, &kernels);
        let told: Vec<(&str, &str)> = used.iter().map(|(kernel, who)| (kernel.as_str(), who.as_str())).collect();
        assert_eq!(told, [("helper", "another kernel of the file"), ("scale", "bench.py")]);
        for (other, is_user) in [
            ("import pkg.ops\npkg.ops.shift[(1,)](x)\n", true),
            ("import pkg.ops as o\no.shift[(1,)](x)\n", true),
            ("def f(x):\n    from .ops import shift\n    shift[(1,)](x)\n", true),
            ("from ops import *\nshift[(1,)](x)\n", true),
            ("from ops import other\nshift = other\n", false),
        ] {
            write("last.py", other);
            let used = external_uses(folder.path(), &folder.path().join("ops.py"), &module, &kernels);
            assert_eq!(used.contains_key("shift"), is_user, "{other}");
        }
    }
}
