//! What a search needs before it can begin: a kernel and a call to measure.

use super::run::failed;
use super::{Observer, OptimizeError, Progress, Request};
use crate::evaluate::devices;
use crate::kernel::Module;
use crate::protocol::{Source, Workload};
use crate::workload::{NoCall, Of, Running, Sought, workloads_of_comments};

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
    // A comment that cannot be read is told of when its call is looked for.
    let said = workloads_of_comments(&request.file, &request.text).unwrap_or_default();
    let is_said = |name: &str| said.iter().any(|one| one.source == Source::Launch && one.entry == name);
    launched.retain(|name| module.launches_of(name).next().is_some() || is_said(name));
    match launched.as_slice() {
        [] => Err(failed(format!("{} launches no kernel of its own{}", request.file.display(), unread(request)))),
        [only] => Ok((*only).to_owned()),
        several => Err(failed(format!("several kernels ({}); name one with --kernel", several.join(", ")))),
    }
}

/// What is wrong with a comment that might have launched one, or that one might.
fn unread(request: &Request) -> String {
    let why = workloads_of_comments(&request.file, &request.text).err();
    let comment = "a comment can: `# warpsmith: workload entry=kernel[cdiv(n,BLOCK)] x=f16[4096] n=4096 BLOCK=1024`";
    format!("; {}", why.unwrap_or_else(|| comment.to_owned()))
}

/// The call that the kernel is measured with: the most frequent of those that launch it. Recorded now, after asking, when
/// there is none.
pub(super) fn call(request: &Request, observer: &dyn Observer, kernel: &str) -> Result<Workload, OptimizeError> {
    let sought = Sought {
        workspace: &request.workspace,
        file: &request.file,
        text: Some(&request.text),
        of: Of::Kernel(kernel),
    };
    let running = Running {
        python: &request.python,
        limits: request.settings.workloads.limits(),
        device: &|| devices().name(),
        may_run: &|question| {
            let may = observer.confirm(question);
            let message = "recording a workload".to_owned();
            observer.progress(&Progress { message, fraction: 0.0, best: None });
            may
        },
        going: &|| !observer.cancelled(),
    };
    let found = sought.find_or_record(&running).map_err(|why| match why {
        NoCall::Cancelled => OptimizeError::Cancelled,
        NoCall::Declined => OptimizeError::Declined(why.to_string()),
        other => failed(other.to_string()),
    })?;
    found.into_iter().next().ok_or_else(|| failed(format!("no call launches `{kernel}`")))
}
