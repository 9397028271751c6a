//! A launch as rules see it: the kernel, and what a run of the host code found out about the arguments.

use std::ops::Deref;

use model::analysis::launches::{ArgumentSource, passed};
use model::analysis::types::KernelAnalysis;
use model::analysis::types::index::Poly;
use model::analysis::witness::Launched;
use model::host::{HostLaunch, HostNumber, HostRun, HostTensor, HostValue};
use model::kernel::ast::Expr;
use model::kernel::{Kernel, Launch, Module, Param};

/// A launch of a kernel of the file, with what it passes.
#[derive(Clone, Copy)]
pub(super) struct KnownLaunch<'c, 'a> {
    pub(super) module: &'a Module,
    /// The kernel.
    pub(super) kernel: &'a Kernel,
    /// The launch.
    pub(super) launch: &'a Launch,
    /// The run of the code around the launch.
    pub(super) run: &'c HostRun,
    /// What the launch passes.
    pub(super) passed: &'c HostLaunch,
}

/// A launch with the facts about its kernel.
#[derive(Clone, Copy)]
pub(super) struct AnalysedLaunch<'c, 'a> {
    pub(super) known: KnownLaunch<'c, 'a>,
    /// The facts about the kernel.
    pub(super) facts: &'c KernelAnalysis,
    /// The index of the kernel in [`Module::kernels`].
    pub(super) at: usize,
}

impl<'c, 'a> Deref for AnalysedLaunch<'c, 'a> {
    type Target = KnownLaunch<'c, 'a>;

    fn deref(&self) -> &Self::Target {
        &self.known
    }
}

impl<'c, 'a> KnownLaunch<'c, 'a> {
    /// The tensor that the launch passes for a parameter.
    pub(super) fn tensor(&self, param: &str) -> Option<&'c HostTensor> {
        let id = self.passed.value(self.module, self.kernel, param).and_then(HostValue::tensor)?;
        Some(self.run.tensor(id))
    }

    /// The integer that the launch passes for a parameter; unknown when it passes none.
    pub(super) fn number(&self, param: &str) -> HostNumber {
        self.passed.value(self.module, self.kernel, param).map_or(HostNumber::Unknown, HostValue::number)
    }

    /// The expression that the launch passes for a parameter.
    pub(super) fn argument(&self, param: &str) -> Option<&'a Expr> {
        match passed(self.launch, self.kernel, param) {
            ArgumentSource::Argument(expr) => Some(expr),
            _ => None,
        }
    }

    /// The integers that the launch passes, and its grid; `None` where the grid is not known. `numbers` supplies
    /// parameters that the launch does not determine.
    pub(super) fn launched(&self, numbers: &dyn Fn(&str) -> Option<i128>) -> Option<Launched> {
        let mut launched = Launched::default();
        for param in &self.kernel.params {
            if let Some(number) = self.number(&param.name).known().or_else(|| numbers(&param.name)) {
                launched.params.insert(param.name.clone(), number);
            }
        }
        // What a parameter is known to be tells what its argument is.
        let set = |name: &str| match setting(name) {
            Some(param) => launched.params.get(param).copied(),
            None => {
                let is_passed = |param: &&Param| self.number(&param.name) == HostNumber::given(name);
                let mut given = self.kernel.params.iter().filter(is_passed);
                given.find_map(|param| launched.params.get(&param.name).copied())
            }
        };
        launched.grid =
            self.passed.grid.as_ref()?.iter().map(|programs| programs.evaluate(&set)).collect::<Option<_>>()?;
        Some(launched)
    }

    /// Whether a number of the host is the size `block` of the kernel's tile, a parameter or number.
    pub(super) fn is_block(&self, block: &Poly, number: &HostNumber) -> bool {
        match (block.as_param(), block.as_number()) {
            (Some(name), _) => self.number(name).is(number) || *number == HostNumber::given(format!("[{name}]")),
            (_, Some(size)) => number.evaluate(&|name| self.number(setting(name)?).known()) == Some(size),
            _ => false,
        }
    }

    /// Whether the launch starts along `axis` enough programs to cover the parameter `size` with tiles of `block`, a
    /// parameter or number, for all sizes.
    pub(super) fn covers(&self, axis: u8, size: &str, block: &Poly) -> bool {
        let programs = self.passed.grid.as_ref().and_then(|grid| grid.get(usize::from(axis)));
        programs
            .and_then(HostNumber::tiles)
            .is_some_and(|(covered, by)| self.is_block(block, by) && self.number(size).is(covered))
    }
}

/// `BLOCK` of `[BLOCK]`, by which host code means what the tuner or the launch sets.
pub(super) fn configured(number: &HostNumber) -> Option<&str> {
    match number {
        HostNumber::Given(name) => setting(name),
        _ => None,
    }
}

fn setting(name: &str) -> Option<&str> {
    name.strip_prefix('[')?.strip_suffix(']')
}
