//! Guesses of signatures from the names and uses of parameters. There are several, because each may be wrong.

use std::collections::HashMap;

use model::kernel::{Module, Param};

use super::constant::Constant;
use super::launch_parameters::{self, LaunchGivens};
use super::usage::{ParameterUsage, UsageReader};
use super::{Given, Givens, Launching, annotated, parameter_names};

/// A rule to fill in unknown parameters.
#[derive(Clone, Copy, Debug)]
struct Mode {
    /// The element type of pointers; `None` for the usual mixture of types.
    element: Option<&'static str>,
    /// The value of flags.
    flag: bool,
    /// The index of the string or number to use, among those with which a parameter is compared.
    choice: usize,
    /// Whether sizes come from the first configuration.
    is_tuned: bool,
}

const fn mode(element: Option<&'static str>, flag: bool, choice: usize, is_tuned: bool) -> Mode {
    Mode { element, flag, choice, is_tuned }
}

const MODES: &[Mode] = &[
    mode(None, true, 0, true),
    mode(None, false, 0, true),
    mode(Some("fp32"), true, 0, true),
    mode(Some("fp32"), false, 0, true),
    mode(Some("bf16"), true, 0, true),
    mode(Some("bf16"), false, 0, true),
    mode(None, true, 1, true),
    mode(None, false, 1, true),
    mode(None, true, 0, false),
    mode(None, false, 0, false),
    mode(Some("fp16"), true, 0, true),
    mode(Some("fp16"), false, 0, true),
    mode(Some("fp32"), true, 1, false),
    mode(Some("fp32"), false, 1, false),
];

/// The guessed signatures of a kernel. There are none if a parameter cannot be guessed, or for functions that only
/// other kernels can call, because their arguments may be tiles.
pub(super) fn all(module: &Module, launch: &Launching<'_>, known: &[Givens], text: &str) -> Vec<Givens> {
    let usage = UsageReader::new(module).of(launch.kernel);
    if !usage.others.is_empty() {
        return Vec::new();
    }
    let mut sites = launch_parameters::sites(module, launch, text);
    let is_tuned =
        launch.kernel.autotune.is_some() || launch.kernel.heuristics.as_ref().is_none_or(|all| !all.is_empty());
    if sites.is_empty() && known.is_empty() && !is_tuned && usage.pointers.is_empty() {
        return Vec::new();
    }
    if sites.is_empty() {
        sites.push(LaunchGivens::default());
    }
    for (at, known) in known.iter().enumerate() {
        let site = at % sites.len();
        sites[site].givens.extend(known.clone());
    }
    let filling = Text { module, launch, usage: &usage, tuned: launch_parameters::tuned(module, launch) };
    // Every launch is used with the likeliest mode, then all modes with one launch each.
    let first = sites.iter().take(4).map(|site| filling.filled(site, MODES[0]));
    let rest = MODES.iter().enumerate().map(|(at, &mode)| filling.filled(&sites[at / 2 % sites.len()], mode));
    first.chain(rest).collect()
}

struct Text<'r, 'a> {
    module: &'a Module,
    launch: &'r Launching<'r>,
    usage: &'r ParameterUsage<'a>,
    tuned: HashMap<String, Constant>,
}

impl Text<'_, '_> {
    fn filled(&self, site: &LaunchGivens, mode: Mode) -> Givens {
        let given = |param: &Param| {
            if let Some(known) = site.givens.get(&param.name) {
                known.clone()
            } else if param.constexpr {
                Given::Constant(self.constant(param, site, mode))
            } else {
                self.at_run_time(param, site, mode)
            }
        };
        self.launch.kernel.params.iter().map(|param| (param.name.clone(), given(param))).collect()
    }

    fn constant(&self, param: &Param, site: &LaunchGivens, mode: Mode) -> Constant {
        let name = param.name.as_str();
        if let Some(strings) = self.usage.strings.get(name).filter(|strings| !strings.is_empty()) {
            return Constant::Str(strings[mode.choice % strings.len()].to_owned());
        }
        if let Some(numbers) = self.usage.numbers.get(name).filter(|numbers| numbers.len() > 1) {
            return Constant::Int(numbers[mode.choice % numbers.len()]);
        }
        let default = param.default.as_ref();
        let default =
            default.and_then(|default| launch_parameters::of_top_level(self.module, default, &HashMap::new()));
        let is_dtype = parameter_names::is_dtype(name) || self.usage.dtypes.contains(name);
        let is_flag = self.usage.flags.contains(name) || parameter_names::is_flag(name) || site.flags.contains(name);
        let is_number = matches!(default, Some(Constant::Int(_)));
        if is_flag && !is_number && !is_dtype || matches!(default, Some(Constant::Bool(_))) {
            return Constant::Bool(mode.flag);
        }
        if let Some(value) = self.tuned.get(name).filter(|_| mode.is_tuned) {
            return value.clone();
        }
        let size = parameter_names::size(name);
        if let (Some(default), true) = (default, mode.is_tuned && size.is_none()) {
            return default;
        }
        if is_dtype {
            return Constant::Dtype(match mode.element {
                Some("fp32") => "float32",
                Some("fp16") => "float16",
                _ => "bfloat16",
            });
        }
        let is_block = parameter_names::is_block(name);
        if !mode.is_tuned && (is_block || size.is_some()) {
            return Constant::Int(parameter_names::other_size(name));
        }
        match size {
            Some(size) => Constant::Int(size),
            None if is_block => Constant::Int(64),
            None if parameter_names::is_small(name) => Constant::Int(4),
            None if parameter_names::is_fraction(name) => Constant::Float(0.5),
            None => Constant::Int(16),
        }
    }

    fn at_run_time(&self, param: &Param, site: &LaunchGivens, mode: Mode) -> Given {
        let name = param.name.as_str();
        if self.usage.pointers.contains(name) || site.tensors.contains(name) {
            return self.launch.pointer(param, self.element(name, mode));
        }
        let kind = match annotated(param) {
            Some(kind) => return Given::Type(kind, false),
            None if site.flags.contains(name) => "i1",
            None if self.usage.whole.contains(name) => "i32",
            None if is_python_float(param) => "fp32",
            None if !parameter_names::is_fraction(name) => "i32",
            None => "fp32",
        };
        Given::Type(kind.to_owned(), false)
    }

    /// The element type of a pointer.
    fn element(&self, name: &str, mode: Mode) -> &'static str {
        if self.usage.addresses.contains(name) {
            return "i64";
        }
        let is_used = self.usage.indices.contains(name);
        let is_index = is_used || parameter_names::is_index(name) && !self.usage.floats.contains(name);
        match mode.element {
            None if parameter_names::is_mask(name) && !is_used => "i1",
            None if is_index && parameter_names::is_wide_index(name) => "i64",
            _ if is_index => "i32",
            None if parameter_names::is_precise(name) => "fp32",
            None => "bf16",
            Some(element) => element,
        }
    }
}

/// Whether a parameter is annotated as `float`, which means nothing to Triton.
fn is_python_float(param: &Param) -> bool {
    param.annotation.as_ref().is_some_and(|annotation| annotation.as_name() == Some("float"))
}
