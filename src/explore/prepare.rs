//! What a search needs before it can begin: a kernel and a call to measure.

use std::fs;
use std::path::Path;

use super::run::failed;
use super::{Observer, OptimizeError, Progress, Request};
use crate::kernel::Module;
use crate::protocol::Workload;
use crate::workload::{self, Unusable};

/// The kernel asked for, or the only one that the file launches.
pub(super) fn select_kernel(module: &Module, request: &Request) -> Result<String, OptimizeError> {
    if let Some(name) = &request.kernel {
        let known = module.kernels.iter().any(|kernel| kernel.name == *name);
        return if known {
            Ok(name.clone())
        } else {
            Err(failed(format!("no kernel `{name}` in {}", request.file.display())))
        };
    }
    let mut launched: Vec<&str> = module.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    launched.retain(|name| module.launches_of(name).next().is_some());
    match launched.as_slice() {
        [] => Err(failed(format!("{} launches no kernel of its own", request.file.display()))),
        [only] => Ok((*only).to_owned()),
        several => Err(failed(format!("several kernels ({}); name one with --kernel", several.join(", ")))),
    }
}

/// A recorded call that launches the kernel; recorded now, after asking, when there is none.
pub(super) fn find_or_record(
    request: &Request,
    observer: &dyn Observer,
    kernel: &str,
    device: &str,
) -> Result<Workload, OptimizeError> {
    let find = || workload::find(&request.workspace, &request.file, kernel, device);
    let again = |what: &str| failed(format!("{what}; record another call with `warpsmith record -- python FILE`"));
    match find() {
        Ok(workload) => return Ok(workload),
        Err(Unusable::Obstacle(what)) => return Err(again(&what)),
        Err(Unusable::NotRecorded) => {}
    }
    let name = request.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !observer.confirm(&format!("No call of `{kernel}` is recorded yet. Run `python {name}` once to record one?")) {
        return Err(OptimizeError::Cancelled);
    }
    observer.progress(&Progress { message: format!("recording a workload: python {name}"), fraction: 0.0, best: None });
    let file = fs::canonicalize(&request.file).unwrap_or_else(|_| request.file.clone());
    let folder = file.parent().unwrap_or(Path::new("."));
    let command = [request.python.clone().into_os_string(), file.clone().into_os_string()];
    let limits = request.settings.workloads.limits();
    let recorded =
        workload::record(&request.workspace, folder, &command, &request.python, device, true, limits, &|| {
            !observer.cancelled()
        })
        .map_err(|error| if observer.cancelled() { OptimizeError::Cancelled } else { failed(error.to_string()) })?;
    find().map_err(|why| match why {
        Unusable::Obstacle(what) => again(&what),
        Unusable::NotRecorded if recorded.status == Some(0) => {
            again(&format!("`python {name}` ran and did not launch `{kernel}` from a function"))
        }
        Unusable::NotRecorded => failed(format!("`python {name}` failed:\n{}", tail(&recorded.output))),
    })
}

/// The last lines of what a program printed.
pub(super) fn tail(text: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
