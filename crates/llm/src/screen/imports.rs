//! Checks of the imports of a candidate.

use tree_sitter::Node;

use model::syntax::field;

use super::objection::ObjectionKind;
use super::paths::{in_class, power_of};
use super::screened::Screened;

/// Modules that kernels and their callers may need.
const HARMLESS: &[&str] = &[
    "__future__",
    "abc",
    "collections",
    "contextlib",
    "copy",
    "dataclasses",
    "enum",
    "functools",
    "itertools",
    "math",
    "numbers",
    "torch",
    "triton",
    "typing",
    "typing_extensions",
];

/// Modules that are not needed to compute something on a device, by kind of objection.
const GROUPS: &[(ObjectionKind, &[&str])] = &[
    (
        ObjectionKind::Outside,
        &[
            "aiohttp",
            "cffi",
            "ctypes",
            "cuda",
            "cupy",
            "dbm",
            "fcntl",
            "fileinput",
            "ftplib",
            "glob",
            "http",
            "httpx",
            "io",
            "mmap",
            "numba",
            "os",
            "pathlib",
            "pickle",
            "posix",
            "pty",
            "pycuda",
            "pynvml",
            "requests",
            "select",
            "shelve",
            "shutil",
            "smtplib",
            "socket",
            "sqlite3",
            "ssl",
            "subprocess",
            "tarfile",
            "tempfile",
            "urllib",
            "urllib3",
            "webbrowser",
            "xmlrpc",
            "zipfile",
        ],
    ),
    (
        ObjectionKind::Dynamic,
        &[
            "ast",
            "base64",
            "builtins",
            "code",
            "codecs",
            "codeop",
            "imp",
            "importlib",
            "marshal",
            "operator",
            "pkgutil",
            "runpy",
            "types",
            "zipimport",
        ],
    ),
    (
        ObjectionKind::Concurrency,
        &["_thread", "asyncio", "atexit", "concurrent", "multiprocessing", "queue", "sched", "signal", "threading"],
    ),
    (
        ObjectionKind::Inspection,
        &[
            "dis",
            "faulthandler",
            "gc",
            "inspect",
            "linecache",
            "platform",
            "resource",
            "sys",
            "traceback",
            "tracemalloc",
            "weakref",
        ],
    ),
];

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
    if matches!(node.kind(), "import_statement" | "import_from_statement") && in_class(node) {
        // A name that becomes an attribute can no longer be followed.
        add(ObjectionKind::Dynamic, screened.text(node));
    }
    match node.kind() {
        "import_statement" => {
            let mut cursor = node.walk();
            for name in node.children_by_field_name("name", &mut cursor) {
                let module = field(name, "name").unwrap_or(name);
                module_is(screened.text(module), add);
            }
        }
        "import_from_statement" => {
            let module = screened.named(node, "module_name").unwrap_or_default();
            let mut cursor = node.walk();
            let names = node.children_by_field_name("name", &mut cursor);
            let names: Vec<&str> = names.map(|name| screened.text(field(name, "name").unwrap_or(name))).collect();
            for name in &names {
                match power_of(&format!("{module}.{name}")) {
                    Some(what) => add(what, &format!("{module}.{name}")),
                    None => module_is(module, add),
                }
            }
            if names.is_empty() {
                // The names that a star import brings are unknown.
                add(ObjectionKind::Import, &format!("from {module} import *"));
            }
        }
        _ => {}
    }
}

fn module_is(module: &str, add: &mut dyn FnMut(ObjectionKind, &str)) {
    let first = module.split('.').next().unwrap_or_default();
    if let Some(what) = power_of(module) {
        add(what, module);
    } else if !HARMLESS.contains(&first) {
        let group = GROUPS.iter().find(|(_, modules)| modules.contains(&first));
        // Imports of different parts of a module count as the same.
        add(group.map_or(ObjectionKind::Import, |(what, _)| *what), &format!("import {first}"));
    }
}
