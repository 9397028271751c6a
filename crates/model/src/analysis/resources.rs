//! The resources of a compiled kernel as Triton's back end reports them, cached with the kernel until something changes
//! that may affect them.

use std::fmt;
use std::sync::Arc;

use super::occupancy::{BlockUsage, MultiprocessorLimits, Occupancy};
use crate::kernel::{Kernel, ShiftSpans};

/// The resources of a kernel on one device, for each way to compile it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resources {
    /// The architecture of the device: `sm_90`, `gfx942`.
    pub device: String,
    /// The limits of the device, where they are known.
    pub limits: Option<&'static MultiprocessorLimits>,
    /// One row for each compiled configuration.
    pub rows: Vec<CompiledVariant>,
    /// The number of configurations that were not compiled, because there are many.
    pub left_out: usize,
}

/// One way to compile a kernel, with its result.
#[derive(Clone, Debug, PartialEq)]
pub struct CompiledVariant {
    /// The index of its `triton.Config`, as [`Tuner::configs`](super::tuning::Tuner::configs) counts them.
    pub config: Option<usize>,
    /// The settings in which it differs from the other rows: `BLOCK=64, num_warps=8`.
    pub setting: String,
    /// How certain the settings are.
    pub certainty: LaunchCertainty,
    /// The result of the compilation.
    pub outcome: CompilationResult,
}

/// How certain it is that the program compiles a kernel with the same settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchCertainty {
    /// Types or values of parameters were guessed.
    Guessed,
    /// Nothing was guessed, but it is not certain that the program runs the kernel with these settings.
    Possible,
    /// The program runs the kernel with these settings.
    Certain,
}

/// The result of a compilation.
#[derive(Clone, Debug, PartialEq)]
pub enum CompilationResult {
    /// The compilation succeeded.
    Compiled(KernelResources),
    /// The back end failed.
    Failed {
        /// The compiler stage that failed.
        stage: String,
        /// The error message.
        message: String,
    },
    /// The front end rejects the kernel, for this reason.
    Refused(String),
    /// The result is not known, for this reason.
    Unknown(String),
}

/// The resources that a compiled kernel uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelResources {
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Bytes that each thread spills.
    pub spills: Option<u32>,
    /// Stack per thread in bytes.
    pub stack: Option<u32>,
    /// Shared memory of a program in bytes.
    pub shared: u32,
    /// Warps of a program.
    pub warps: u32,
    /// Programs in a cluster, which run together on a group of multiprocessors.
    pub ctas: u32,
}

impl ShiftSpans for Resources {
    // Configurations are identified by index, so nothing here has a span that moves.
    fn shift(&mut self, _: isize) {}
}

impl Resources {
    /// The cached resources of a kernel.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Option<Arc<Self>> {
        kernel.facts.peek(0).filter(|known: &Arc<Self>| !known.rows.is_empty())
    }

    /// Clears the cached resources of a kernel.
    pub fn forget(kernel: &Kernel) {
        Self { device: String::new(), limits: None, rows: Vec::new(), left_out: 0 }.keep(kernel);
    }

    /// Caches the resources with the kernel.
    pub fn keep(self, kernel: &Kernel) {
        kernel.facts.put(0, self);
    }

    /// The caveat that applies when results rest on assumptions; `None` when none do.
    #[must_use]
    pub fn caveat(&self) -> Option<&'static str> {
        let is = |row: &CompiledVariant| row.certainty == LaunchCertainty::Possible && row.config.is_none();
        if self.rows.iter().any(|row| row.certainty == LaunchCertainty::Guessed) {
            Some("parameters guessed")
        } else {
            self.rows.iter().any(is).then_some("launch options assumed")
        }
    }

    /// The occupancy with the settings of a row; `None` where it is not known.
    #[must_use]
    pub fn occupancy(&self, row: &CompiledVariant) -> Option<Occupancy> {
        let CompilationResult::Compiled(taken) = &row.outcome else { return None };
        // The placement of a cluster depends on more than one multiprocessor.
        let usage = BlockUsage { registers: taken.registers?, shared: taken.shared, warps: taken.warps };
        self.limits.filter(|_| taken.ctas <= 1)?.occupancy(usage)
    }

    /// The result of a row as text.
    #[must_use]
    pub fn describe(&self, row: &CompiledVariant) -> String {
        let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        match (&row.outcome, self.missing_resource(row)) {
            (_, Some(lack)) => lack,
            (CompilationResult::Compiled(taken), None) => match self.occupancy(row) {
                Some(occupancy) => format!("{taken}, {occupancy}"),
                None => taken.to_string(),
            },
            (CompilationResult::Failed { stage, message }, None) => format!("stops at {stage}: {}", first(message)),
            (CompilationResult::Refused(message), None) => format!("does not compile: {}", first(message)),
            (CompilationResult::Unknown(why), None) => format!("unknown: {}", first(why)),
        }
    }

    /// The reason why the device cannot run a row: the resource that a program would need too much of. `None` when it
    /// can.
    #[must_use]
    pub fn missing_resource(&self, row: &CompiledVariant) -> Option<String> {
        let device = &self.device;
        match &row.outcome {
            CompilationResult::Compiled(taken) => {
                let most = self.limits?.shared_of_block;
                (taken.shared > most).then(|| {
                    let (needed, most) = (grouped(taken.shared), grouped(most));
                    format!("needs {needed} bytes of shared memory; {device} has {most} for a program")
                })
            }
            CompilationResult::Failed { stage, message } => {
                let line = message.lines().find(|line| is_about_resources(line) || stage == "launch")?;
                let what = if stage == "launch" { "cannot run on" } else { "cannot be made for" };
                Some(format!("{what} {device}: {}", line.trim()))
            }
            CompilationResult::Refused(_) | CompilationResult::Unknown(_) => None,
        }
    }
}

/// Whether a line of the assembler's output reports an exhausted resource.
fn is_about_resources(line: &str) -> bool {
    [
        "too much shared data",
        "too much shared memory",
        "too much local data",
        "Register allocation failed",
        "OutOfResources",
    ]
    .iter()
    .any(|words| line.contains(words))
}

impl fmt::Display for KernelResources {
    /// `190 registers, no spills, 48 KiB shared`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(registers) = self.registers {
            write!(f, "{registers} registers, ")?;
        }
        match self.spills {
            Some(0) => f.write_str("no spills, ")?,
            Some(bytes) => write!(f, "{} spilled, ", bytes_text(bytes))?,
            None => {}
        }
        write!(f, "{} shared", bytes_text(self.shared))
    }
}

impl fmt::Display for Occupancy {
    /// `occupancy 12.5 % (registers)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "occupancy {} %", self.percent())?;
        self.limit.map_or(Ok(()), |limit| write!(f, " ({limit})"))
    }
}

/// A number of bytes as text: `12 bytes`, `48 KiB`.
#[must_use]
pub(crate) fn bytes_text(bytes: u32) -> String {
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let tenths = (f64::from(bytes) / 102.4).round() / 10.0;
    format!("{tenths} KiB")
}

/// A number with its digits in groups of three.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let groups = digits.as_bytes()[first..].chunks(3).map(String::from_utf8_lossy);
    let groups: Vec<_> = (first > 0).then(|| digits[..first].into()).into_iter().chain(groups).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(outcome: CompilationResult) -> Resources {
        let row =
            CompiledVariant { config: None, setting: String::new(), certainty: LaunchCertainty::Certain, outcome };
        Resources { device: "sm_90".to_owned(), limits: MultiprocessorLimits::of(90), rows: vec![row], left_out: 0 }
    }

    fn taken(shared: u32) -> KernelResources {
        KernelResources { registers: Some(190), spills: Some(0), stack: Some(0), shared, warps: 4, ctas: 1 }
    }

    fn lack(outcome: CompilationResult) -> Option<String> {
        let resources = resources(outcome);
        resources.missing_resource(&resources.rows[0])
    }

    #[test]
    fn exceeded_resources_are_reported_with_numbers() {
        assert_eq!(lack(CompilationResult::Compiled(taken(232_448))), None);
        assert_eq!(
            lack(CompilationResult::Compiled(taken(270_336))).as_deref(),
            Some("needs 270,336 bytes of shared memory; sm_90 has 232,448 for a program")
        );
        let failed = |stage: &str, message: &str| CompilationResult::Failed {
            stage: stage.to_owned(),
            message: message.to_owned(),
        };
        let log = "ptxas exited with 255\nptxas error : Entry function 'k' uses too much shared data (0x50000 bytes, 0x38c00 max)";
        assert!(lack(failed("cubin", log)).unwrap().contains("uses too much shared data (0x50000"));
        assert_eq!(lack(failed("cubin", "ptxas was not found")), None, "that is not the kernel's fault");
        assert!(lack(failed("launch", "needs 600 columns of tensor memory")).is_some());
        assert_eq!(lack(CompilationResult::Unknown("too much shared data".to_owned())), None);
    }

    #[test]
    fn unknown_devices_have_no_limits() {
        let mut unknown = resources(CompilationResult::Compiled(taken(500_000)));
        unknown.limits = None;
        assert_eq!((unknown.missing_resource(&unknown.rows[0]), unknown.occupancy(&unknown.rows[0])), (None, None));
    }

    #[test]
    fn resources_are_formatted_as_text() {
        let resources = resources(CompilationResult::Compiled(taken(49_152)));
        let CompilationResult::Compiled(taken) = &resources.rows[0].outcome else { panic!() };
        assert_eq!(taken.to_string(), "190 registers, no spills, 48 KiB shared");
        let occupancy = resources.occupancy(&resources.rows[0]).unwrap();
        assert_eq!(occupancy.to_string(), "occupancy 12.5 % (registers)");
        let of_amd = KernelResources { registers: None, spills: Some(12), shared: 33_280, ..*taken };
        assert_eq!(of_amd.to_string(), "12 bytes spilled, 32.5 KiB shared");
        let cluster = CompilationResult::Compiled(KernelResources { ctas: 2, ..*taken });
        let cluster = super::tests::resources(cluster);
        assert_eq!(cluster.occupancy(&cluster.rows[0]), None);
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!([0, 12, 999, 1000, 232_448, 1_048_576].map(grouped).join(" "), "0 12 999 1,000 232,448 1,048,576");
    }
}
