//! Hardware counters from NVIDIA's profiler `ncu`, where it is installed and allowed: which kernel of a call takes the
//! time, and what limits it. They only decide what the search tries first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::is_simulated;
use protocol::runner::{ExitCause, IsolatedCall};

use super::bench::Bench;
use super::case::Task;
use super::child_processes::last_line;
use super::locks::lock;
use super::nvidia_tools::{ToolCommand, installed, text};
use super::undecided::Undecided;

/// For tests: a program that replaces the profiler on a simulated device.
const FAKE_ENV: &str = "WARPSMITH_FAKE_PROFILER";
/// The time limit: the profiler runs each kernel several times, and takes seconds to start.
const LIMIT: Duration = Duration::from_secs(40);
/// The most launches that are profiled.
const LAUNCHES: &str = "64";

/// The metrics: nanoseconds, and percent of the device's peak.
const TIME: &str = "gpu__time_duration.sum";
const MEMORY: &str = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
const COMPUTE: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
const WARPS: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";

/// The counters of one kernel, over its launches in one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// The number of launches.
    pub launches: u32,
    /// Milliseconds of all launches together, with a cold cache.
    pub milliseconds: f64,
    /// The share of the memory bandwidth that is used, between 0 and 1. All shares are means over the time.
    pub memory: f64,
    /// The share of the peak of the busiest compute unit of the multiprocessors.
    pub compute: f64,
    /// The occupancy: active warps as a share of the warps that fit.
    pub warps: f64,
}

/// Profiles by the function names of the kernels.
pub type Profiles = BTreeMap<String, Profile>;

/// The path of `ncu`, if it is installed.
pub fn profiler(python: Option<&Path>) -> Option<PathBuf> {
    if is_simulated() {
        return std::env::var_os(FAKE_ENV).map(PathBuf::from);
    }
    installed("ncu", python)
}

/// Reads the profiler's report on these kernels; `None` where the report has another content, for example because
/// counters are not allowed.
fn read(report: &str, kernels: &[String]) -> Option<Profiles> {
    let table = report.find("\"ID\"").map(|start| &report[start..])?;
    let mut lines = csv::ReaderBuilder::new().flexible(true).from_reader(table.as_bytes());
    let column = |headers: &csv::StringRecord, name: &str| headers.iter().position(|header| header == name);
    let headers = lines.headers().ok()?.clone();
    let name = column(&headers, "Kernel Name")?;
    let columns = [TIME, MEMORY, COMPUTE, WARPS].map(|name| column(&headers, name));
    let [Some(time), Some(memory), Some(compute), Some(warps)] = columns else { return None };
    let mut found = Profiles::new();
    for line in lines.records().map_while(Result::ok) {
        let number = |at: usize| line.get(at)?.replace(',', "").parse::<f64>().ok();
        // The line with the units has no numbers.
        let (Some(time), Some(symbol)) = (number(time), line.get(name)) else { continue };
        // The longest kernel name that is a prefix of the symbol, since the specialization may follow.
        let named = kernels.iter().filter(|kernel| symbol.starts_with(kernel.as_str()));
        let Some(kernel) = named.max_by_key(|kernel| kernel.len()) else { continue };
        let profile = found.entry(kernel.clone()).or_default();
        let milliseconds = time / 1e6;
        profile.launches += 1;
        profile.milliseconds += milliseconds;
        for (share, at) in [(&mut profile.memory, memory), (&mut profile.compute, compute), (&mut profile.warps, warps)]
        {
            *share += number(at)? / 100.0 * milliseconds;
        }
    }
    for profile in found.values_mut() {
        let all = profile.milliseconds.max(f64::MIN_POSITIVE);
        [&mut profile.memory, &mut profile.compute, &mut profile.warps].into_iter().for_each(|share| *share /= all);
    }
    (!found.is_empty()).then_some(found)
}

impl Bench {
    /// Profiles these kernels in the first call of a task's original. Shares the device, and blocks for seconds.
    ///
    /// # Errors
    /// Returns the reason why nothing was counted.
    pub(super) fn profile(
        &self,
        task: &Task,
        kernels: &[String],
        is_unwanted: &dyn Fn() -> bool,
    ) -> Result<Profiles, String> {
        let profiler = profiler(Some(&self.python)).ok_or("ncu is not on this machine")?;
        let report = self.profiled(&profiler, task, kernels, is_unwanted).map_err(|undecided| undecided.why)??;
        read(&report, kernels).ok_or_else(|| format!("ncu says: {}", last_line(&report)))
    }

    fn profiled(
        &self,
        profiler: &Path,
        task: &Task,
        kernels: &[String],
        is_unwanted: &dyn Fn() -> bool,
    ) -> Result<Result<String, String>, Undecided> {
        let workload = task.workloads.first().ok_or_else(|| Undecided::original("there is no call"))?;
        let baseline = self.baseline((&task.original, &task.folder), workload, true)?;
        // Autotuners choose in the first call, without the profiler.
        baseline.known(self, 0)?;
        let chosen = lock(&baseline.original.chosen).clone();
        // `ncu` locks a file of its own inside the program, and reads the counters with the permissions of our user.
        let job = IsolatedCall { unfenced: true, chosen, ..baseline.isolated_call(self, "profiled")? };
        let options = [
            ("--csv", None),
            ("--page", Some("raw".to_owned())),
            ("--print-units", Some("base".to_owned())),
            // The clocks of the device stay as they are set.
            ("--clock-control", Some("none".to_owned())),
            ("--target-processes", Some("application-only".to_owned())),
            ("--launch-count", Some(LAUNCHES.to_owned())),
            ("--kernel-name", Some(format!("regex:^({})", kernels.join("|")))),
            ("--metrics", Some([TIME, MEMORY, COMPUTE, WARPS].join(","))),
        ];
        let mut command = vec![text(profiler)];
        command.extend(options.into_iter().flat_map(|(name, value)| [name.to_owned()].into_iter().chain(value)));
        let started = self.start_under("profile", ToolCommand { command, variables: Vec::new() })?;
        let Some((ended, report)) = started.call(&job, LIMIT, is_unwanted)? else {
            return Ok(Err(format!("ncu took more than {} s", LIMIT.as_secs())));
        };
        let found = report.unwrap_or_default();
        let _ = std::fs::remove_dir_all(&job.fence.scratch);
        Ok(match ended.cause {
            ExitCause::Status(0) => Ok(found),
            how => Err(format!("ncu {how}: {}", last_line(&format!("{}\n{found}", ended.output)))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
==PROF== Connected to process 812 (/usr/bin/python3.12)
==PROF== Profiling \"norm_kernel\" - 0: 0%....50%....100% - 1 pass
\"ID\",\"Process ID\",\"Kernel Name\",\"dram__throughput.avg.pct_of_peak_sustained_elapsed\",\"gpu__time_duration.sum\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"sm__warps_active.avg.pct_of_peak_sustained_active\"
\"\",\"\",\"\",\"%\",\"ns\",\"%\",\"%\"
\"0\",\"812\",\"norm_kernel\",\"80.0\",\"3,000\",\"10.0\",\"50\"
\"1\",\"812\",\"norm_kernel_2_0d1d\",\"40.0\",\"9000\",\"20.0\",\"25\"
\"2\",\"812\",\"norm_kernel\",\"60.0\",\"1000\",\"30.0\",\"90\"
\"3\",\"812\",\"elementwise\",\"60.0\",\"1000\",\"30.0\",\"90\"
";

    #[test]
    fn launches_of_one_kernel_are_averaged_by_time() {
        let kernels = ["norm_kernel".to_owned(), "norm_kernel_2".to_owned()];
        let found = read(REPORT, &kernels).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), ["norm_kernel", "norm_kernel_2"]);
        let Profile { launches, milliseconds, memory, compute, warps } = found["norm_kernel"];
        assert_eq!((launches, milliseconds), (2, 0.004));
        assert!((memory - 0.75).abs() < 1e-9 && (compute - 0.15).abs() < 1e-9 && (warps - 0.6).abs() < 1e-9);
        assert_eq!(found["norm_kernel_2"].launches, 1);
    }

    #[test]
    fn an_invalid_profiler_report_gives_no_profile() {
        let kernels = ["norm_kernel".to_owned()];
        let refused =
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters";
        for report in ["", refused, &REPORT.replace("dram__throughput", "other"), &REPORT.replace("norm_kernel", "n")] {
            assert_eq!(read(report, &kernels), None, "{report}");
        }
    }
}
