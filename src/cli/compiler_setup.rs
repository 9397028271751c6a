//! The setup that the commands that compile kernels share: the interpreter, the device, and the model of a file.

use std::path::{Path, PathBuf};

use compiler::CompileTarget;
use model::api::Version;
use model::kernel::Module;
use model::syntax::Source;
use runtime::python::environment::PythonEnvironment;

use crate::workspace::Workspace;

/// The reason why Triton is not asked; `option` is the command-line option for the interpreter, if there is one.
pub(super) fn no_interpreter(option: Option<&str>) -> String {
    let option = option.map_or_else(String::new, |option| format!("name one by {option} or "));
    format!("no Python with Triton was found; {option}set `python` in warpsmith.toml")
}

/// The interpreter, and its Triton version.
pub(super) fn interpreter(environment: Option<PythonEnvironment>) -> Option<(PathBuf, Version)> {
    environment.and_then(|environment| Some((environment.python, environment.triton?)))
}

/// The GPU of this machine.
pub(super) fn local_device() -> Option<CompileTarget> {
    CompileTarget::of_capability(judge::devices().capability()?)
}

/// The file at `path`, an absolute path, with its model, including imports and recorded launches.
pub(super) fn model(text: &str, path: &Path, workspace: &Workspace) -> (Source, Module) {
    let source = Source::parse(text);
    let mut module = Module::build(&source);
    workspace.complete(&mut module, path);
    (source, module)
}
