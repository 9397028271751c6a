//! An abstract run of host code: what a function that launches kernels passes to them.
//!
//! [`HostRun::of`] runs a function once, statement by statement, over abstract values: integers are expressions over
//! sizes that the caller decides ([`HostNumber`]), and tensors are objects with an origin, an element type, sizes and
//! strides ([`HostTensor`]). Both branches of an `if` run and are joined; names that a loop changes are unknown in it.
//! A fact is certain or absent: nothing here guesses.
//!
//! [`HostRun::of_callers`] runs the code that calls these functions, with the sizes and types that it passes: the file's
//! `if __name__ == "__main__":` and functions that need no arguments. What it finds is one use among many.

mod callers;
mod descriptor;
mod expressions;
mod launch;
mod number;
mod slices;
mod statements;
mod tensor;
#[cfg(test)]
mod tests;
mod torch;
mod value;

use std::sync::Arc;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};

pub use callers::Callers;
pub use descriptor::HostDescriptor;
pub use number::{HostNumber, HostOperation, HostOperator};
pub use tensor::{HostTensor, Layout, TensorId, TensorOrigin};
pub use value::HostValue;

use crate::analysis::launches::{ArgumentSource, passed};
use crate::kernel::ast::Expr;
use crate::kernel::{HostFunction, Kernel, Module, ShiftSpans};
use crate::syntax::{Source, Span};

/// The result of running a host function.
#[derive(Clone, Debug)]
pub struct HostRun {
    /// The launches in the order in which they were met.
    pub launches: Vec<HostLaunch>,
    /// Calls of other functions by a plain name.
    pub calls: Vec<HostCall>,
    /// Tests of strides whose outcome is certain, because the stride is always the same.
    pub settled: Vec<SettledTest>,
    /// The tensor descriptors that the function makes.
    pub descriptors: Vec<HostDescriptor>,
    tensors: Vec<HostTensor>,
    /// Names of numbers from outside that an assertion or a condition looks at.
    checked: HashSet<String>,
}

/// A comparison of a stride with a number whose outcome is certain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SettledTest {
    /// Span of the comparison.
    pub span: Span,
    /// Whether it asks for a remainder of 0: `x.stride(0) % 16 == 0`.
    pub is_of_remainder: bool,
    /// Its outcome.
    pub holds: bool,
}

/// A launch with the values that it passes.
#[derive(Clone, Debug)]
pub struct HostLaunch {
    /// The index of the launch in [`Module::launches`].
    pub launch: usize,
    /// Span of the launch.
    pub span: Span,
    /// The value of each argument, in the order of the call.
    pub args: Vec<HostValue>,
    /// The number of programs along each axis; `None` when the grid is not written out. A value that the tuner or the
    /// launch sets is given by the name of its parameter in brackets: `[BLOCK]`.
    pub grid: Option<Vec<HostNumber>>,
    /// The memory (see [`HostTensor::storage`]) that nothing has written before.
    pub unset: HashSet<usize>,
    /// Whether a loop may repeat the launch.
    pub is_repeated: bool,
}

/// A call of a function by a plain name.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// The name of the function.
    pub name: String,
    /// The values of its positional arguments, each with its span.
    pub args: Vec<(HostValue, Span)>,
    /// The values of its keyword arguments.
    pub keywords: Vec<HostValue>,
    /// Span of the call.
    pub span: Span,
}

impl HostRun {
    /// Runs the function `host` of `module`, whose text is `text`.
    #[must_use]
    pub fn of(module: &Module, text: &str, host: &HostFunction) -> Self {
        let mut runner = Runner::new(module, text, host);
        runner.run();
        runner.run
    }

    /// Runs each of `callers` and, in place, the functions that it calls, as on a machine with a GPU.
    #[must_use]
    pub fn of_callers(module: &Module, text: &str, callers: &Callers) -> Vec<Self> {
        let run = |entry| {
            let mut runner = Runner { callers: Some(callers), ..Runner::new(module, text, entry) };
            runner.run();
            runner.run
        };
        callers.entries().map(run).filter(|run| !run.launches.is_empty()).collect()
    }

    /// The run of a function in [`Module::hosts`], which is kept until something changes that it depends on.
    #[must_use]
    pub fn cached(module: &Module, text: &str, host: &HostFunction) -> Arc<Self> {
        host.facts.get_while(0, |run: &Self| run.is_current(module, host), || Self::of(module, text, host))
    }

    /// The runs of all functions of `module` that launch kernels, in order, and that of the top level where it launches
    /// some.
    #[must_use]
    pub fn all(module: &Module, source: &Source) -> Vec<Arc<Self>> {
        let text = source.text();
        let mut runs: Vec<Arc<Self>> = module.hosts.iter().map(|host| Self::cached(module, text, host)).collect();
        if module.launches.iter().any(|launch| launch.host.is_none()) {
            runs.push(Arc::new(Self::of(module, text, &Module::top_level(source))));
        }
        runs
    }

    /// The tensor for which the memory of `tensor` was made.
    #[must_use]
    pub fn owner(&self, tensor: &HostTensor) -> Option<&HostTensor> {
        self.tensors.iter().find(|other| other.storage == tensor.storage)
    }

    /// Whether a cached run of `host` still names the launches of `module`, and its places have moved with `host`.
    fn is_current(&self, module: &Module, host: &HostFunction) -> bool {
        let is_own = |tensor: &HostTensor| tensor.made.is_none_or(|made| host.span.contains(made));
        let is_same = |of: &HostLaunch| module.launches.get(of.launch).is_some_and(|launch| launch.span == of.span);
        self.launches.iter().all(is_same) && self.tensors.iter().all(is_own)
    }

    /// The times that this run met the launch with this index in [`Module::launches`].
    pub fn launches_at(&self, at: usize) -> impl Iterator<Item = &HostLaunch> {
        self.launches.iter().filter(move |launch| launch.launch == at)
    }

    /// A tensor of this run.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> &HostTensor {
        &self.tensors[id]
    }

    /// Whether the function looks at a number from outside, in an assertion or a condition: it may then be limited.
    #[must_use]
    pub fn is_checked(&self, name: &str) -> bool {
        self.checked.contains(name)
    }
}

impl HostCall {
    /// Whether the call gets this number, which is not known, as an argument of its own.
    #[must_use]
    pub fn gets(&self, number: &HostNumber) -> bool {
        let values = self.args.iter().map(|(value, _)| value).chain(&self.keywords);
        number.known().is_none() && values.map(HostValue::number).any(|value| value.is(number))
    }
}

impl HostLaunch {
    /// The value that the launch passes for the parameter `name` of `kernel`; `None` when it passes none.
    #[must_use]
    pub fn value(&self, module: &Module, kernel: &Kernel, name: &str) -> Option<&HostValue> {
        let launch = module.launches.get(self.launch)?;
        let ArgumentSource::Argument(expr) = passed(launch, kernel, name) else { return None };
        let at = launch.args.iter().position(|arg| arg.value.span == expr.span)?;
        self.args.get(at)
    }
}

impl ShiftSpans for HostRun {
    fn shift(&mut self, by: isize) {
        self.launches.iter_mut().for_each(|launch| launch.span.shift(by));
        self.settled.iter_mut().for_each(|test| test.span.shift(by));
        self.tensors.iter_mut().for_each(|tensor| tensor.made.shift(by));
        for descriptor in &mut self.descriptors {
            descriptor.span.shift(by);
            descriptor.strides.iter_mut().for_each(|(_, span)| span.shift(by));
        }
        for call in &mut self.calls {
            call.span.shift(by);
            call.args.iter_mut().for_each(|(_, span)| span.shift(by));
        }
    }
}

/// The names of a function at one point.
#[derive(Clone, Debug, Default)]
struct State<'a> {
    names: HashMap<&'a str, HostValue>,
    /// Memory that something has written.
    written: HashSet<usize>,
}

/// A run in progress.
struct Runner<'a> {
    module: &'a Module,
    text: &'a str,
    host: &'a HostFunction,
    run: HostRun,
    lambdas: Vec<(&'a [String], &'a Expr)>,
    storages: usize,
    /// The number of values that are not followed and got a name.
    opaque: usize,
    /// The number of expressions around the current one, through globals.
    depth: u32,
    /// The number of loops around the current statement.
    loops: u32,
    /// The functions that are run in place where they are called; `None` when calls are not followed.
    callers: Option<&'a Callers>,
    /// The number of functions that are being run in place.
    calls: u32,
    /// What the current function returned so far.
    returned: Option<HostValue>,
}

impl<'a> Runner<'a> {
    fn new(module: &'a Module, text: &'a str, host: &'a HostFunction) -> Self {
        let run = HostRun {
            launches: Vec::new(),
            calls: Vec::new(),
            settled: Vec::new(),
            descriptors: Vec::new(),
            tensors: Vec::new(),
            checked: HashSet::default(),
        };
        Self {
            module,
            text,
            host,
            run,
            lambdas: Vec::new(),
            storages: 0,
            opaque: 0,
            depth: 0,
            loops: 0,
            callers: None,
            calls: 0,
            returned: None,
        }
    }

    fn run(&mut self) {
        let host = self.host;
        let mut state = State::default();
        for name in &host.params {
            state.names.insert(name, HostValue::Given(name.as_str().into()));
        }
        // `backward` of a `torch.autograd.Function` gets gradients of any layout.
        if host.name == "backward"
            && let [context, gradients @ ..] = host.params.as_slice()
            && matches!(context.as_str(), "ctx" | "context" | "self")
        {
            for name in gradients {
                let gradient =
                    HostTensor { name: Some(name.as_str().into()), ..self.new_tensor(TensorOrigin::Gradient) };
                let gradient = self.add(gradient);
                state.names.insert(name, HostValue::Tensor(gradient));
            }
        }
        self.body(&host.body, &mut state);
    }

    fn new_tensor(&mut self, origin: TensorOrigin) -> HostTensor {
        self.storages += 1;
        HostTensor {
            name: None,
            like: None,
            origin,
            made: None,
            storage: self.storages,
            copied_from: None,
            dtype: None,
            shape: None,
            layout: Layout::Unknown,
        }
    }

    fn add(&mut self, tensor: HostTensor) -> TensorId {
        self.run.tensors.push(tensor);
        self.run.tensors.len() - 1
    }

    /// Whether a tensor of this name was met before, or the function has a parameter of this name.
    fn is_known(&self, name: &str) -> bool {
        self.host.params.iter().any(|param| param == name)
            || self.run.tensors.iter().any(|tensor| tensor.name.as_deref() == Some(name))
    }

    /// The tensor that `value` is; a parameter or an unknown value that is used as a tensor becomes one, called `name`.
    fn as_tensor(&mut self, value: &HostValue, name: Option<&'a str>, state: &mut State<'a>) -> Option<TensorId> {
        match value {
            HostValue::Tensor(id) => Some(*id),
            HostValue::Given(_) | HostValue::Opaque(_) | HostValue::Unknown => {
                let mut tensor = self.new_tensor(TensorOrigin::Given);
                let Some(name) = name else { return Some(self.add(tensor)) };
                // A name that is bound anew means another tensor, whose sizes are not those of the first.
                let is_first = matches!(value, HostValue::Given(_)) || !self.is_known(name);
                tensor.name = Some(if is_first { name.into() } else { format!("{name}@{}", tensor.storage).into() });
                let id = self.add(tensor);
                state.names.insert(name, HostValue::Tensor(id));
                Some(id)
            }
            _ => None,
        }
    }
}
