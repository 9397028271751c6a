//! Preparation of a search: it selects the kernels, and finds or records the calls that they are measured with.

use std::collections::BTreeMap;

use judge::devices;
use model::kernel::Module;
use model::syntax;
use protocol::{Workload, WorkloadSource};
use workload::{CallQuery, CallRecorder, CallSubject, NoCallReason, reaches, workloads_of_comments};

use super::external_uses::external_uses;
use super::observer::{Observer, Progress};
use super::outcome::{OptimizeError, failed};
use super::request::{OptimizeScope, SearchRequest};

/// The kernels to optimize and their calls.
pub(super) struct SearchTarget {
    /// The kernel's name; for several kernels, the function that launches them; for none, the function that a model
    /// is to write them for.
    pub(super) name: String,
    /// The kernels in the order of their definitions; empty where they are to be written.
    pub(super) kernels: Vec<String>,
    /// Calls of one function, the one with the greatest weight first.
    pub(super) workloads: Vec<Workload>,
    /// Kernels that are used elsewhere, with their users.
    pub(super) shared: BTreeMap<String, String>,
}

impl SearchTarget {
    /// The names that a model's excerpt needs beside the called function.
    pub(super) fn needed(&self) -> Vec<String> {
        let is_bench = self.workloads.iter().any(|workload| workload.source == WorkloadSource::KernelBench);
        let inputs = ["get_inputs", "get_init_inputs"].into_iter().filter(|_| is_bench).map(str::to_owned);
        self.kernels.iter().cloned().chain(inputs).collect()
    }

    /// Whether the function launches no kernel yet.
    pub(super) fn is_new(&self) -> bool {
        self.kernels.is_empty()
    }
}

/// The kernel that was asked for, or those that the file launches; none where a model is to write them.
pub(super) fn select_kernels(module: &Module, request: &SearchRequest) -> Result<Vec<String>, OptimizeError> {
    if let OptimizeScope::Kernel(name) = &request.subject {
        let known = module.kernels.iter().any(|kernel| kernel.name == *name);
        return if known {
            Ok(vec![name.clone()])
        } else {
            Err(failed(format!("no kernel `{name}` in {}", request.file.display())))
        };
    }
    // A comment that cannot be read is reported when its call is looked for.
    let said = workloads_of_comments(&request.file, &request.text).unwrap_or_default();
    let is_said = |name: &str| said.iter().any(|one| one.source == WorkloadSource::Launch && one.entry == name);
    let mut launched: Vec<String> = module.kernels.iter().map(|kernel| kernel.name.clone()).collect();
    launched.retain(|name| module.launches_of(name).next().is_some() || is_said(name));
    if let OptimizeScope::Function(function) = &request.subject {
        launched.retain(|kernel| reaches(&request.text, function, kernel));
        if launched.is_empty() && !writes(request) {
            let file = request.file.display();
            return Err(failed(format!("`{function}` launches no kernel of {file}; {WRITE}")));
        }
    }
    if launched.is_empty() && !writes(request) {
        let what = format!("{} launches no kernel itself{}", request.file.display(), unread(request));
        return Err(failed(what));
    }
    Ok(launched)
}

/// What is needed to have a kernel written.
const WRITE: &str = "a language model can write one: set `model.base-url` and `model.name`";

/// Whether a model may write kernels for a function, or for the `Model` of a file, that launches none.
fn writes(request: &SearchRequest) -> bool {
    request.settings.model.is_asked() && request.settings.optimize.rewrites
}

/// The defect of a comment that might describe a launch, or a hint that a comment could.
fn unread(request: &SearchRequest) -> String {
    let why = workloads_of_comments(&request.file, &request.text).err();
    let comment = "a comment can: `# warpsmith: workload entry=kernel[cdiv(n,BLOCK)] x=f16[4096] n=4096 BLOCK=1024`";
    format!("; {}", why.unwrap_or_else(|| comment.to_owned()))
}

/// The kernels with the calls that they are measured with. If no call is known, one is recorded after asking the
/// user.
pub(super) fn target(
    request: &SearchRequest,
    observer: &dyn Observer,
    kernels: Vec<String>,
) -> Result<SearchTarget, OptimizeError> {
    let called = request.subject.name().map(|name| called(&request.text, name)).unwrap_or_default();
    let of = match (kernels.as_slice(), &request.subject) {
        ([], OptimizeScope::Function(_)) => CallSubject::Entry(&called),
        ([only], OptimizeScope::File | OptimizeScope::Kernel(_)) => CallSubject::Kernel(only),
        _ => CallSubject::File,
    };
    let sought = CallQuery { workspace: &request.workspace, file: &request.file, text: Some(&request.text), of };
    let running = CallRecorder {
        python: &request.python,
        limits: store::RetentionLimits::from(&request.settings.workloads),
        device: &|| devices().name(),
        may_run: &|question| {
            let may = observer.confirm(question);
            let message = "recording a workload".to_owned();
            observer.progress(&Progress::before(message));
            may
        },
        go_on: &|| !observer.cancelled(),
    };
    let found = sought.find_or_record(&running).map_err(|why| match why {
        NoCallReason::Cancelled => OptimizeError::Cancelled,
        NoCallReason::Declined => OptimizeError::Declined(why.to_string()),
        other => failed(other.to_string()),
    })?;
    chosen(request, kernels, found)
}

/// A torch module is called through its method: `Net.forward` for `Net`.
fn called(text: &str, name: &str) -> String {
    let is_class = |line: &str| {
        line.strip_prefix("class ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(['(', ':']))
    };
    if text.lines().any(is_class) { format!("{name}.forward") } else { name.to_owned() }
}

/// Selects the calls of a single function; for a single kernel, those of the function that is called most often.
/// Kernels of several functions must be named.
fn chosen(
    request: &SearchRequest,
    kernels: Vec<String>,
    mut found: Vec<Workload>,
) -> Result<SearchTarget, OptimizeError> {
    let is_one = kernels.len() == 1;
    let reached = |entry: &str| -> Vec<String> {
        kernels.iter().filter(|kernel| is_one || reaches(&request.text, entry, kernel)).cloned().collect()
    };
    let is_new = kernels.is_empty();
    found.retain(|workload| is_new || !reached(&workload.entry).is_empty());
    if let OptimizeScope::Function(function) = &request.subject {
        let called = called(&request.text, function);
        found.retain(|workload| workload.entry == called);
        if found.is_empty() {
            return Err(failed(format!(
                "no call of `{function}` is known: `warpsmith record -- COMMAND` records those of a program"
            )));
        }
    }
    let Some(first) = found.first() else {
        if is_new {
            return Err(failed(format!("no call of {} is known", request.file.display())));
        }
        return Err(failed(format!("no call launches `{}`", kernels.join("` or `"))));
    };
    let (entry, source) = (first.entry.clone(), first.source);
    if is_new && found.iter().any(|workload| workload.entry != entry) {
        return Err(failed("several functions are called; name one with --function".to_owned()));
    }
    if !is_one && found.iter().any(|workload| workload.entry != entry) {
        let several = kernels.join(", ");
        return Err(failed(format!(
            "several functions launch kernels ({several}); name one with --function, or a kernel with --kernel"
        )));
    }
    found.retain(|workload| workload.entry == entry && workload.source == source);
    if source == WorkloadSource::Launch {
        // Each comment has numbers of its own.
        found.truncate(1);
    }
    let kernels = reached(&entry);
    let name = if let [only] = kernels.as_slice() { only.clone() } else { entry };
    let module = Module::build(&syntax::Source::parse(request.text.as_str()));
    let shared = external_uses(&request.workspace, &request.file, &module, &kernels);
    Ok(SearchTarget { name, kernels, workloads: found, shared })
}
