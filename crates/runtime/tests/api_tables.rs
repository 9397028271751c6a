//! A test that compares the tables of `config/api/` with the installed Triton.

use std::collections::BTreeMap;
use std::path::Path;

use model::api::{Member, MemberKind, Table, Version};
use runtime::python::environment::{InterpreterSearch, PythonEnvironment};

/// The output of `installed.py`.
#[derive(serde::Deserialize)]
struct Installed {
    version: Version,
    modules: BTreeMap<String, BTreeMap<String, Real>>,
    launch_options: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Real {
    kind: MemberKind,
    /// For each parameter: its name, whether it has a default, and whether it is keyword-only.
    params: Option<Vec<(String, bool, bool)>>,
}

/// Compares the table of the installed Triton with its actual members. The test is skipped without an installed Triton,
/// unless `WARPSMITH_TEST_PYTHON` is set.
#[test]
fn the_table_is_what_the_installed_triton_offers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.as_path();
    let named = std::env::var_os("WARPSMITH_TEST_PYTHON");
    let search = InterpreterSearch { start: root, root, settings: named.as_deref().map(Path::new), editor: None };
    let environment = PythonEnvironment::find(&search, &|name| std::env::var_os(name));
    let installed = environment.and_then(|found| Some((found.python, found.triton?)));
    let table = installed.as_ref().and_then(|(_, version)| Table::all().iter().find(|table| table.version == *version));
    let (Some((python, version)), Some(table)) = (installed, table) else {
        assert!(named.is_none(), "WARPSMITH_TEST_PYTHON has no Triton that a table describes");
        return eprintln!("skipped: no Triton that a table describes is installed");
    };
    let script = root.join("crates/model/src/api/installed.py");
    let output = std::process::Command::new(&python).arg(script).args(table.modules.keys()).output().unwrap();
    assert!(output.status.success(), "{}: {}", python.display(), String::from_utf8_lossy(&output.stderr));
    let installed: Installed = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(installed.version, version);
    let differences = differences(table, &installed);
    assert!(
        differences.is_empty(),
        "config/api/triton-{}.{}.json is stale; write it again with `cargo xtask api {version}`:\n{}",
        version.major,
        version.minor,
        differences.join("\n")
    );
}

fn differences(table: &'static Table, installed: &Installed) -> Vec<String> {
    let mut out = Vec::new();
    for (module, real) in &installed.modules {
        let written = &table.modules[module];
        for (name, real) in real.iter().filter(|(name, _)| !name.starts_with("__")) {
            match written.get(name) {
                None => out.push(format!("{module}.{name} is missing")),
                Some(member) if !name.starts_with('_') => {
                    out.extend(difference(member, real).map(|what| format!("{module}.{name}: {what}")))
                }
                Some(_) => {}
            }
        }
        // Submodules are listed whether or not they have been imported.
        let gone = |(name, member): &(&String, &Member)| {
            member.kind != MemberKind::Module && !name.starts_with("__") && !real.contains_key(*name)
        };
        out.extend(written.iter().filter(gone).map(|(name, _)| format!("{module}.{name} does not exist")));
    }
    let mut options = table.launch_options.clone();
    options.sort();
    if options != installed.launch_options {
        out.push(format!("launch options are {:?}", installed.launch_options));
    }
    out
}

fn difference(member: &Member, real: &Real) -> Option<String> {
    use MemberKind::{Class, Function, Value};
    // A member that Triton imports from elsewhere (`typing.Union`) is listed as a value.
    let vague = member.kind == Value && matches!(real.kind, Class | Function | MemberKind::Module);
    if member.kind != real.kind && !vague {
        return Some(format!("is a {:?}, not a {:?}", real.kind, member.kind));
    }
    let mut keyword_only = false;
    let mut params = Vec::new();
    for param in &member.params {
        match param.name.strip_prefix('*') {
            None => params.push((param.name.clone(), param.default.is_some(), keyword_only)),
            Some(rest) => keyword_only |= !rest.starts_with('*'),
        }
    }
    let told = real.params.as_ref().filter(|_| !vague)?;
    (*told != params).then(|| format!("its parameters are {told:?}, not {params:?}"))
}
