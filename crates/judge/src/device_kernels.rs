//! The last check before an offer: the list of kernels that the device runs in a call of the candidate. It finds work
//! that neither Triton nor torch's operators launch, such as direct calls of a library or a CUDA graph that was
//! captured before.

use protocol::is_simulated;
use protocol::runner::{CallOutput, EntryCall, RunnerReply, RunnerRequest};

use super::baseline::Baseline;
use super::bench::Bench;
use super::case::Case;
use super::child_processes::RunnerGone;
use super::locks::{lock, lock_first};
use super::operators::is_free;
use super::stop_reason::Stop;
use super::undecided::Undecided;
use super::verdict::Reason;

/// Copies and fills of memory, which are not kernels.
const MEMORY: &[&str] = &["Memcpy", "Memset"];
/// Namespaces of torch's own kernels.
const OF_TORCH: &[&str] = &["at::native", "at::cuda", "at_cuda", "c10::"];
/// Parts of the names of torch's kernels that compute nothing.
const IDLE: &[&str] = &["fill", "copy", "arange", "eye"];

impl Baseline {
    /// The kernels that the device runs in the original's recorded call; `None` where the driver cannot list them.
    pub(super) fn kernels(&self, bench: &Bench) -> Result<Option<Vec<String>>, Undecided> {
        if is_simulated() || bench.environment().torch.is_empty() {
            return Ok(None);
        }
        let mut known = lock_first(&self.kernels);
        if let Some(known) = known.as_ref() {
            return Ok(known.clone());
        }
        let call = self.call(self.trials[0].inputs.clone(), false);
        // A separate process lists the kernels, since listing may slow down launches and the original's process is
        // timed.
        let mut runner = self.original.start(bench)?;
        let _shared = bench.shared();
        // The choices are forced, so that no measurements of an autotuner are listed.
        let (chosen, forced) = (lock(&self.original.chosen).clone(), true);
        let request = RunnerRequest::Run(EntryCall { list: true, watch: true, export: false, chosen, forced, ..call });
        let found = match runner.ask(&request, bench.limits.call) {
            Ok(RunnerReply::Ran(ran)) => ran.kernels,
            Err(RunnerGone::Unwanted) => return Err(Undecided::cancelled()),
            _ => None,
        };
        Ok(known.insert(found).clone())
    }
}

impl Case<'_> {
    /// Refuses a candidate whose work is done by kernels that neither it nor the original launches through Triton or
    /// torch. This check is the last one, since listing kernels may break the process.
    pub(super) fn kernels(&mut self) -> Result<(), Stop> {
        let baseline = self.baseline.clone();
        let Some(usual) = baseline.kernels(self.bench)? else { return Ok(()) };
        let call = EntryCall { list: true, watch: true, ..baseline.call(baseline.trials[0].inputs.clone(), false) };
        let _shared = self.shared();
        let ran = match self.run(&call) {
            Ok((ran, slot)) => {
                self.bench.drop_slots(vec![slot])?;
                ran
            }
            Err(Stop::Undecided(why)) => return Err(Stop::Undecided(why)),
            Err(Stop::Refused(_, why, _)) => {
                self.notes.push(format!("which kernels the device runs could not be listed: {why}"));
                return Ok(());
            }
        };
        let Some(found) = &ran.kernels else { return Ok(()) };
        if let Some(name) = found.iter().find(|name| !usual.contains(name) && !is_explained(name, &ran)) {
            let what = format!(
                "the device ran the kernel `{name}`, which no launch of Triton's and no operator of torch's explains; the original \
                 does not run it"
            );
            return Err(Stop::Refused(Reason::Fallback, what, None));
        }
        self.passed("kernels on the device", format!("the driver tells of nothing else: {}", short(found)));
        Ok(())
    }
}

/// Whether a launch or an operator that was observed in the call explains a kernel.
fn is_explained(name: &str, ran: &CallOutput) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if MEMORY.iter().any(|word| name.starts_with(word)) {
        return true;
    }
    // Older releases of Triton append the specialization to the kernel's name.
    let mut launched = ran.launches.iter().map(|launch| &launch.kernel).chain(&ran.symbols);
    if launched.any(|launched| name.starts_with(launched)) {
        return true;
    }
    // Another check limits how much the operators compute. Which kernels an operator uses is unknown.
    let computes = ran.operators.iter().any(|(operator, _)| !is_free(operator));
    let lower = name.to_lowercase();
    computes || (has(OF_TORCH) && IDLE.iter().any(|word| lower.contains(word)))
}

/// Kernel names, shortened for reports.
fn short(names: &[String]) -> String {
    const MOST: usize = 60;
    let cut = |name: &String| match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.clone(),
    };
    names.iter().map(cut).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::LaunchRecord;

    #[test]
    fn kernels_are_explained_by_observed_launches_and_operators() {
        let launch = LaunchRecord { kernel: "matmul_kernel".to_owned(), ..LaunchRecord::default() };
        let ran = |operators: &[&str]| CallOutput {
            launches: vec![launch.clone()],
            symbols: vec!["by_another_name".to_owned()],
            operators: operators.iter().map(|name| ((*name).to_owned(), 8)).collect(),
            ..CallOutput::default()
        };
        let (quiet, busy) = (ran(&["aten::empty_like", "aten::zeros"]), ran(&["aten::sum"]));
        let fill = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)";
        let sum = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(float)";
        for (name, by_quiet, by_busy) in [
            ("matmul_kernel", true, true),
            ("matmul_kernel_0d1d2d", true, true),
            ("by_another_name", true, true),
            ("Memcpy DtoD (Device -> Device)", true, true),
            (fill, true, true),
            (sum, false, true),
            ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", false, true),
            ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm>(Params)", false, true),
        ] {
            assert_eq!((is_explained(name, &quiet), is_explained(name, &busy)), (by_quiet, by_busy), "{name}");
        }
    }
}
