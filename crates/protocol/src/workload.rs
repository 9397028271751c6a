//! Workloads: calls of the user's functions, as the recorder writes them and workers replay them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::RuntimeVersions;

/// An entry call: what to run to exercise a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Where it comes from, which also determines how it is replayed.
    #[serde(default)]
    pub source: WorkloadSource,
    /// The file of the entry, absolute.
    pub file: PathBuf,
    /// The function's `qualname`; `Fn.apply` for an autograd function, the kernel's name for a launch.
    pub entry: String,
    /// Positional arguments.
    pub args: Vec<ArgumentValue>,
    /// Keyword arguments.
    pub kwargs: Vec<(String, ArgumentValue)>,
    /// Indices of the distinct tensors (in order of first appearance) that the call changed.
    pub mutated: Vec<usize>,
    /// The launches inside the call, in order.
    pub launches: Vec<LaunchRecord>,
    /// The grid of a launch, as expressions of its arguments ([`super::GridExpr`]); empty if it consists of numbers or if
    /// this is no launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grid: Vec<String>,
    /// The keyword arguments of a launch that are compile-time constants of the kernel; they are never sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<String>,
    /// How often a call of these shapes was seen.
    pub count: u64,
    /// The software versions and the device of the recording.
    pub environment: RuntimeVersions,
    /// Whether gradients were computed through what it returned; their launches are among [`Self::launches`].
    #[serde(default)]
    pub gradients: bool,
    /// Whether it returned nothing and changed no tensor when it was recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub traceless: bool,
    /// Why the call cannot be replayed, if the recorder noticed a reason.
    #[serde(default)]
    pub blocked: Option<String>,
}

/// Where a workload comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadSource {
    /// A recorded call of a function.
    #[default]
    Recorded,
    /// A launch of a kernel by itself, recorded since no recordable function makes it, or described by a comment: the
    /// kernel is launched with [`Workload::grid`], else with the grid of the only element of [`Workload::launches`].
    Launch,
    /// A comment in the file.
    Comment,
    /// `Model`, `get_inputs` and `get_init_inputs` of the file, which make the arguments.
    KernelBench,
}

/// A launch inside an entry call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaunchRecord {
    /// The kernel's name.
    pub kernel: String,
    /// The grid, once known.
    pub grid: Vec<i64>,
    /// Keyword arguments that are plain values: constexprs and launch options, including those of the configuration
    /// that an autotuner chose.
    pub keywords: Vec<(String, ArgumentValue)>,
    /// The arguments of the kernel's parameters, by name.
    #[serde(default)]
    pub arguments: Vec<(String, ArgumentValue)>,
}

/// A launch that raised an exception during a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedLaunch {
    /// The kernel's file, absolute.
    pub file: PathBuf,
    /// The launch with its arguments.
    pub launch: LaunchRecord,
}

impl FailedLaunch {
    /// The extension of their files in a recording's folder.
    pub const EXTENSION: &str = "failed";
}

/// A value of an argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArgumentValue {
    /// `None`
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float.
    Float(#[serde(with = "floats::one")] f64),
    /// A complex number: real and imaginary part.
    Complex(#[serde(with = "floats::many")] Vec<f64>),
    /// A string.
    Str(String),
    /// An element type of torch, such as `float16`, without the `torch.`.
    Dtype(String),
    /// A device.
    Device(String),
    /// A tensor.
    Tensor(TensorSpec),
    /// A tensor argument of a launch, of which only the element type is kept, without the `torch.`.
    Pointer(String),
    /// A list.
    List(Vec<ArgumentValue>),
    /// A tuple.
    Tuple(Vec<ArgumentValue>),
    /// A dictionary, in its order.
    Dict(Vec<(ArgumentValue, ArgumentValue)>),
    /// A set.
    Set(Vec<ArgumentValue>),
    /// `slice(start, stop, step)`.
    Slice(Vec<ArgumentValue>),
    /// A member of a module: a function, a class, a member of an enumeration, a type of Triton.
    Global(Reference),
    /// An instance of a named tuple class.
    NamedTuple {
        /// The class.
        class: Reference,
        /// The fields, in order.
        items: Vec<ArgumentValue>,
    },
    /// A value that its class constructs from arguments: a `range`, a `torch.Size`, a numpy scalar.
    Made {
        /// The class.
        class: Reference,
        /// The arguments of the constructor.
        parts: Vec<ArgumentValue>,
    },
    /// An object that consists of its class and its attributes: a data class, a module of torch.
    Object {
        /// The class.
        class: Reference,
        /// The contents of its `__dict__` and its slots.
        state: Vec<(String, ArgumentValue)>,
    },
    /// Any other value, by the name of its type; the call cannot be replayed.
    Opaque(String),
}

/// A reference to a member of a module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reference {
    /// The module's name in the recorded program: `torch.nn.functional`, `__main__`.
    pub module: String,
    /// The module's file, if it has one.
    pub file: Option<PathBuf>,
    /// The path inside the module: `Color.RED`.
    pub path: String,
}

/// The description of a tensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// Index of the tensor object among the call's distinct tensors.
    pub id: usize,
    /// Index of its storage among the call's distinct storages: equal ones alias.
    pub storage: usize,
    /// Sizes.
    pub shape: Vec<i64>,
    /// Strides, in elements.
    pub stride: Vec<i64>,
    /// Offset into the storage, in elements.
    pub offset: i64,
    /// Element type, without the `torch.`.
    pub dtype: String,
    /// Device type: `cuda`, `cpu`.
    pub device: String,
    /// Index of the device among those of its type.
    #[serde(default)]
    pub device_index: u32,
    /// Whether it requires a gradient.
    pub requires_grad: bool,
    /// Whether it is a `torch.nn.Parameter`.
    #[serde(default)]
    pub is_parameter: bool,
    /// Its contents or their distribution.
    pub data: TensorContents,
}

/// The contents of a tensor or their distribution. A dimension of stride 0 counts as one element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TensorContents {
    /// Normally distributed floats, clamped to `low` and `high`. For complex numbers this is about their parts.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        std: f64,
        /// Smallest element.
        low: f64,
        /// Largest element.
        high: f64,
        /// Share of elements that are zero.
        #[serde(default)]
        zeros: f64,
        /// Share of elements that are minus infinity; the other statistics leave these out.
        #[serde(default)]
        infinite: f64,
        /// A further property of the floats.
        #[serde(default)]
        kind: FloatDistribution,
    },
    /// These floats, in the order of the elements.
    Floats(#[serde(with = "floats::many")] Vec<f64>),
    /// These integers (they may be indices), in the order of the elements.
    Integers(Vec<i64>),
    /// Too many integers to keep: any between `low` and `high`, inclusive.
    Range {
        /// Smallest element.
        low: i64,
        /// Largest element.
        high: i64,
        /// Whether they ascend along the last dimension.
        #[serde(default)]
        sorted: bool,
        /// Share of elements that are zero.
        #[serde(default)]
        zeros: f64,
    },
}

/// A property of the floats of a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FloatDistribution {
    /// No known property.
    #[default]
    General,
    /// The elements are uniformly distributed between the smallest and the largest.
    Uniform,
    /// Each row has one element that is 1; the others are 0.
    OneHot,
    /// No element is negative and each row adds up to 1.
    Probabilities,
}

impl Default for TensorContents {
    fn default() -> Self {
        Self::normal(0.0, 1.0, -4.0, 4.0)
    }
}

impl TensorContents {
    /// Floats without a known property.
    #[must_use]
    pub fn normal(mean: f64, std: f64, low: f64, high: f64) -> Self {
        Self::Normal { mean, std, low, high, zeros: 0.0, infinite: 0.0, kind: FloatDistribution::General }
    }

    /// Integers without a known order or share of zeros.
    #[must_use]
    pub fn range(low: i64, high: i64) -> Self {
        Self::Range { low, high, sorted: false, zeros: 0.0 }
    }
}

impl ArgumentValue {
    /// Why the value cannot be created again, if it cannot.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        match self {
            Self::Opaque(name) => Some(format!("an argument of type `{name}`")),
            Self::Global(what)
            | Self::NamedTuple { class: what, .. }
            | Self::Made { class: what, .. }
            | Self::Object { class: what, .. }
                if what.path.contains("<locals>") =>
            {
                Some(format!("`{}` is defined inside a function", what.path))
            }
            _ => self.inner().find_map(Self::obstacle),
        }
    }

    /// Calls `visit` on each tensor inside the value.
    pub fn tensors<'a>(&'a self, visit: &mut dyn FnMut(&'a TensorSpec)) {
        match self {
            Self::Tensor(spec) => visit(spec),
            _ => self.inner().for_each(|item| item.tensors(visit)),
        }
    }

    /// The values directly inside this one.
    pub fn inner(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match self {
            Self::List(items)
            | Self::Tuple(items)
            | Self::Set(items)
            | Self::Slice(items)
            | Self::NamedTuple { items, .. }
            | Self::Made { parts: items, .. } => Box::new(items.iter()),
            Self::Dict(items) => Box::new(items.iter().flat_map(|(key, value)| [key, value])),
            Self::Object { state, .. } => Box::new(state.iter().map(|(_, value)| value)),
            _ => Box::new(std::iter::empty()),
        }
    }
}

impl Workload {
    /// All arguments, positional first.
    pub fn values(&self) -> impl Iterator<Item = &ArgumentValue> {
        self.args.iter().chain(self.kwargs.iter().map(|(_, value)| value))
    }

    /// Every tensor among the arguments, in order; a tensor that is passed twice is listed twice.
    #[must_use]
    pub fn specs(&self) -> Vec<&TensorSpec> {
        let mut specs = Vec::new();
        self.values().for_each(|value| value.tensors(&mut |spec| specs.push(spec)));
        specs
    }

    /// Why the call cannot be replayed, if it cannot.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        if self.entry.contains("<locals>") {
            return Some("it is defined inside another function".to_owned());
        }
        let of_arguments = || self.values().find_map(ArgumentValue::obstacle);
        self.blocked.clone().or_else(of_arguments).or_else(|| self.spread())
    }

    fn spread(&self) -> Option<String> {
        let specs = self.specs();
        let mut devices = specs.iter().filter(|spec| spec.device != "cpu").map(|spec| spec.device_index);
        let first = devices.next()?;
        devices.any(|index| index != first).then(|| "its tensors lie on several GPUs".to_owned())
    }

    /// Whether sizes can be replaced. They can't if the grid of a launch consists of numbers, or if code of the file
    /// creates the inputs of a model.
    #[must_use]
    pub fn is_resizable(&self) -> bool {
        match self.source {
            WorkloadSource::Recorded | WorkloadSource::Comment => true,
            WorkloadSource::Launch => !self.grid.is_empty(),
            WorkloadSource::KernelBench => false,
        }
    }

    /// The kernels launched, each once, in order of first appearance.
    #[must_use]
    pub fn kernels(&self) -> Vec<&str> {
        let mut kernels: Vec<&str> = Vec::new();
        for launch in &self.launches {
            if !kernels.contains(&launch.kernel.as_str()) {
                kernels.push(&launch.kernel);
            }
        }
        kernels
    }
}

/// The serialization of floats. JSON has neither infinity nor NaN, so these are written as text.
mod floats {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Float {
        Number(f64),
        Text(String),
    }

    impl Float {
        fn of(value: f64) -> Self {
            if value.is_finite() { Self::Number(value) } else { Self::Text(value.to_string()) }
        }

        fn value<E: serde::de::Error>(self) -> Result<f64, E> {
            match self {
                Self::Number(value) => Ok(value),
                Self::Text(text) => text.parse().map_err(E::custom),
            }
        }
    }

    pub(super) mod one {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Float;

        pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
            Float::of(*value).serialize(to)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
            Float::deserialize(from)?.value()
        }
    }

    pub(super) mod many {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Float;

        pub(crate) fn serialize<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
            values.iter().map(|&value| Float::of(value)).collect::<Vec<_>>().serialize(to)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
            Vec::<Float>::deserialize(from)?.into_iter().map(Float::value).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn infinities_and_nan_survive_json() {
        let values = ArgumentValue::Tuple(vec![
            ArgumentValue::Float(f64::NEG_INFINITY),
            ArgumentValue::Complex(vec![1.5, f64::INFINITY]),
            ArgumentValue::Tensor(TensorSpec {
                data: TensorContents::Floats(vec![1e-300, f64::INFINITY]),
                ..TensorSpec::default()
            }),
        ]);
        let text = serde_json::to_string(&values).unwrap();
        assert_eq!(serde_json::from_str::<ArgumentValue>(&text).unwrap(), values);
        let nan = serde_json::to_string(&ArgumentValue::Float(f64::NAN)).unwrap();
        assert!(matches!(serde_json::from_str(&nan).unwrap(), ArgumentValue::Float(value) if value.is_nan()));
    }

    #[test]
    fn workloads_that_cannot_be_repeated_name_the_obstacle() {
        let of = |value| Workload { entry: "f".to_owned(), args: vec![value], ..Workload::default() }.obstacle();
        assert_eq!(of(ArgumentValue::Int(1)), None);
        let opaque = ArgumentValue::Dict(vec![(
            ArgumentValue::Int(1),
            ArgumentValue::List(vec![ArgumentValue::Opaque("io.File".to_owned())]),
        )]);
        assert_eq!(of(opaque).unwrap(), "an argument of type `io.File`");
        let local = Reference { path: "f.<locals>.Local".to_owned(), ..Reference::default() };
        let object = ArgumentValue::Object { class: local, state: Vec::new() };
        assert_eq!(of(object).unwrap(), "`f.<locals>.Local` is defined inside a function");
        let on = |device_index| {
            ArgumentValue::Tensor(TensorSpec { device: "cuda".to_owned(), device_index, ..TensorSpec::default() })
        };
        assert_eq!(of(ArgumentValue::Tuple(vec![on(1), on(1)])), None);
        assert_eq!(of(ArgumentValue::Tuple(vec![on(1), on(0)])).unwrap(), "its tensors lie on several GPUs");
    }

    /// Recordings of older releases can still be read.
    #[test]
    fn older_recordings_are_read() {
        let old = r#"{"file":"/a.py","entry":"f","args":[{"tensor":{"id":0,"storage":0,"shape":[2],"stride":[1],
            "offset":0,"dtype":"int64","device":"cuda","requires_grad":false,"data":{"range":{"low":0,"high":3}}}}],
            "kwargs":[],"mutated":[],"launches":[],"count":1,
            "environment":{"python":"","torch":"","triton":"","device":"","driver":""}}"#;
        let read: Workload = serde_json::from_str(old).unwrap();
        assert_eq!(read.source, WorkloadSource::Recorded);
        assert!(matches!(&read.args[0], ArgumentValue::Tensor(spec) if spec.data == TensorContents::range(0, 3)));
    }
}
