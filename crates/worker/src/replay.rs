//! Creation of a call's arguments from a recorded workload: Python objects and tensors with fresh contents.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyDict, PyList, PySet, PySlice, PyTuple, PyType};

use protocol::runner::{FloatContents, Inputs, Reuse, Terms};
use protocol::sizes::{CallSizes, StorageLayout};
use protocol::{ArgumentValue, Reference, TensorContents, TensorSpec, Workload, WorkloadSource, is_float};

use super::errors::failed;
use super::launch::resolve;
use super::models::model_inputs;
use super::objects::restore;
use super::torch_free;
use super::values::{DescribedArguments, bounds, contents, dtype, fill, guarded};

/// The arguments of one call, and their distinct tensors by [`TensorSpec::id`].
pub(super) struct ReplayedArguments<'py> {
    pub(super) args: Bound<'py, PyTuple>,
    pub(super) kwargs: Bound<'py, PyDict>,
    pub(super) tensors: Vec<Bound<'py, PyAny>>,
    storages: BTreeMap<usize, Storage<'py>>,
}

/// A storage: bytes with a guard area on both sides.
#[derive(Clone)]
struct Storage<'py> {
    whole: Bound<'py, PyAny>,
    size: i64,
    /// The dtype of the flat view.
    dtype: String,
    /// The id of the first tensor over the storage.
    first: usize,
}

/// Creates arguments on a device.
pub(super) struct Replay<'py, 'a> {
    pub(super) py: Python<'py>,
    /// Torch, where it is installed.
    pub(super) torch: Option<Bound<'py, PyModule>>,
    /// The module of the file that is going to be called.
    module: Bound<'py, PyAny>,
    /// The workload including its arguments, whatever their source.
    pub(super) workload: Cow<'a, Workload>,
    /// The device of `cuda` tensors: `cuda`, or `cpu` when the device is simulated.
    pub(super) device: &'a str,
}

impl<'py, 'a> Replay<'py, 'a> {
    /// A replay for calls of `module`.
    pub(super) fn new(
        py: Python<'py>,
        module: &Bound<'py, PyAny>,
        workload: &'a Workload,
        device: &'a str,
    ) -> PyResult<Self> {
        let torch = if torch_free::is_active(py) { None } else { Some(py.import("torch")?) };
        if torch.is_none() && workload.source != WorkloadSource::Launch {
            return Err(torch_free::wants_torch(py, "a call of a function"));
        }
        let mut workload = Cow::Borrowed(workload);
        if workload.source == WorkloadSource::KernelBench {
            let inputs = model_inputs(py, module, &workload, 0)?;
            let described = DescribedArguments::of(&inputs, &PyDict::new(py), std::path::Path::new("/"))?;
            let workload = workload.to_mut();
            workload.args = described.args;
            // Tensors that the file creates on the processor are moved to the device with the model.
            workload.args.iter_mut().for_each(to_device);
        }
        Ok(Self { py, torch, module: module.clone(), workload, device })
    }

    /// The arguments for these inputs. Equal inputs give equal contents.
    pub(super) fn arguments(&self, inputs: &Inputs) -> PyResult<ReplayedArguments<'py>> {
        let sizes = CallSizes::new(&self.workload, inputs);
        let mut making = Making::new(self, &sizes, inputs)?;
        making.fill()?;
        let storages = making.finish()?;
        if self.torch.is_none() {
            let settle = contents(self.py)?.getattr("settle")?;
            storages.values().try_for_each(|storage| settle.call1((&storage.whole,)).map(drop))?;
        }
        self.bind(storages, &sizes, inputs)
    }

    fn item_size(&self, name: &str) -> PyResult<i64> {
        if self.torch.is_none() {
            torch_free::item_size(name)
        } else {
            dtype(self.py, name)?.getattr("itemsize")?.extract()
        }
    }

    /// Torch, or an error that `what` needs it.
    fn torch_for(&self, what: &str) -> PyResult<&Bound<'py, PyModule>> {
        self.torch.as_ref().ok_or_else(|| torch_free::wants_torch(self.py, what))
    }

    fn device_of(&self, spec: &TensorSpec) -> &str {
        if spec.device == "cpu" { "cpu" } else { self.device }
    }

    /// All elements between the guards.
    fn flat(&self, storage: &Storage<'py>) -> PyResult<Bound<'py, PyAny>> {
        let count = storage.size / self.item_size(&storage.dtype)?;
        self.view(storage, &storage.dtype, &StorageLayout { shape: vec![count], stride: vec![1], offset: 0 })
    }

    fn view(&self, storage: &Storage<'py>, dtype: &str, placed: &StorageLayout) -> PyResult<Bound<'py, PyAny>> {
        let view = contents(self.py)?.getattr("view")?;
        let shape = PyTuple::new(self.py, &placed.shape)?;
        let stride = PyTuple::new(self.py, &placed.stride)?;
        view.call1((&storage.whole, self::dtype(self.py, dtype)?, shape, stride, placed.offset))
    }

    fn bind(
        &self,
        storages: BTreeMap<usize, Storage<'py>>,
        sizes: &CallSizes<'_>,
        inputs: &Inputs,
    ) -> PyResult<ReplayedArguments<'py>> {
        let mut binding = Binding { replay: self, storages: &storages, sizes, inputs, tensors: Vec::new() };
        let other = |at: usize| inputs.others.iter().find(|(of, _)| *of == at).map(|(_, value)| value);
        let (given, named) = (&self.workload.args, &self.workload.kwargs);
        let args = given.iter().enumerate().map(|(at, value)| binding.value(other(at).unwrap_or(value)));
        let args = args.collect::<PyResult<Vec<_>>>()?;
        let kwargs = PyDict::new(self.py);
        for (at, (name, value)) in named.iter().enumerate() {
            match other(given.len() + at).unwrap_or(value) {
                ArgumentValue::Int(constant) if self.workload.constants.contains(name) => {
                    kwargs.set_item(name, constant)?
                }
                value => kwargs.set_item(name, binding.value(value)?)?,
            }
        }
        for (name, value) in &inputs.added {
            kwargs.set_item(name, binding.value(value)?)?;
        }
        // A tensor is created even where another value replaces it, since results are counted by the ids of tensors.
        self.workload.specs().into_iter().try_for_each(|spec| binding.tensor(spec).map(drop))?;
        let tensors = binding.tensors.into_iter().collect::<Option<Vec<_>>>();
        let tensors = tensors.ok_or_else(|| failed("a tensor is missing"))?;
        Ok(ReplayedArguments { args: PyTuple::new(self.py, args)?, kwargs, tensors, storages })
    }
}

fn to_device(value: &mut ArgumentValue) {
    match value {
        ArgumentValue::Tensor(spec) => "cuda".clone_into(&mut spec.device),
        ArgumentValue::List(items) | ArgumentValue::Tuple(items) => items.iter_mut().for_each(to_device),
        _ => {}
    }
}

impl<'py> ReplayedArguments<'py> {
    /// Copies the contents from larger tensors: the last part of each dimension that is longer there.
    pub(super) fn take_last(&self, from: &Self) -> PyResult<()> {
        for (to, from) in self.tensors.iter().zip(&from.tensors) {
            contents(to.py())?.getattr("take_last")?.call1((to, from))?;
        }
        Ok(())
    }

    /// Copies the contents from tensors of the same shapes, all or only some parts of each storage, which `seed`
    /// selects.
    pub(super) fn refill(&self, from: &Self, which: Reuse, seed: u64) -> PyResult<()> {
        let which = match which {
            Reuse::Nothing | Reuse::All => "all",
            Reuse::Middle => "middle",
            Reuse::Few => "few",
        };
        let refill = |py: Python<'py>| contents(py)?.getattr("refill");
        for (to, from) in self.storages.values().zip(from.storages.values()) {
            refill(to.whole.py())?.call1((&to.whole, &from.whole, to.size, which, seed))?;
        }
        Ok(())
    }

    /// Which argument's guards were overwritten, as text.
    pub(super) fn overrun(&self) -> PyResult<Option<String>> {
        let Some(py) = self.storages.values().map(|storage| storage.whole.py()).next() else { return Ok(None) };
        let given = self.storages.values().map(|storage| {
            let dtype = dtype(py, &storage.dtype)?;
            (&storage.whole, storage.size, dtype, storage.first).into_pyobject(py)
        });
        let given = PyList::new(py, given.collect::<PyResult<Vec<_>>>()?)?;
        let found: Vec<i64> = contents(py)?.getattr("overruns")?.call1((given,))?.extract()?;
        let written = self.storages.values().zip(found).find(|(_, bytes)| *bytes != 0);
        Ok(written.map(|(storage, bytes)| {
            let (bytes, place) = (bytes.abs(), if bytes > 0 { "behind the end" } else { "before the beginning" });
            format!("memory was written {bytes} bytes {place} of tensor argument {}", storage.first)
        }))
    }
}

/// Storages while they are being filled.
struct Making<'r, 'py, 'a> {
    replay: &'r Replay<'py, 'a>,
    sizes: &'r CallSizes<'r>,
    inputs: &'r Inputs,
    /// Each tensor once, with its placement.
    specs: Vec<(TensorSpec, StorageLayout)>,
    storages: BTreeMap<usize, Storage<'py>>,
    generators: Bound<'py, PyDict>,
}

impl<'r, 'py, 'a> Making<'r, 'py, 'a> {
    fn new(replay: &'r Replay<'py, 'a>, sizes: &'r CallSizes<'r>, inputs: &'r Inputs) -> PyResult<Self> {
        let mut specs: Vec<(TensorSpec, StorageLayout)> = Vec::new();
        for spec in replay.workload.specs() {
            if specs.iter().all(|(seen, _)| seen.id != spec.id) {
                specs.push((spec.clone(), sizes.place(spec)));
            }
        }
        let mut bytes: HashMap<usize, i64> = HashMap::new();
        for (spec, placed) in &specs {
            let size = bytes.entry(spec.storage).or_default();
            *size = (*size).max(placed.extent() * replay.item_size(&spec.dtype)?);
        }
        let mut storages = BTreeMap::new();
        for (spec, _) in &specs {
            if let Entry::Vacant(free) = storages.entry(spec.storage) {
                let size = bytes[&spec.storage];
                let whole = guarded(replay.py, (size, replay.device_of(spec)), &spec.dtype, spec.id, inputs)?;
                free.insert(Storage { whole, size, dtype: spec.dtype.clone(), first: spec.id });
            }
        }
        let make = contents(replay.py)?.getattr("generators")?;
        let generators = make.call1((["cpu", replay.device], inputs.seed & 0x7fff_ffff_ffff))?.cast_into()?;
        Ok(Self { replay, sizes, inputs, specs, storages, generators })
    }

    fn fill(&mut self) -> PyResult<()> {
        for (spec, placed) in &self.specs {
            let storage = &self.storages[&spec.storage];
            let view = self.replay.view(storage, &spec.dtype, placed)?;
            let data = self.sizes.data(spec, placed);
            if storage.first == spec.id && placed.extent() > placed.distinct() && !is_by_value(&data) {
                // The memory between the rows is filled like the rest.
                fill(&self.replay.flat(storage)?, &data, &self.generators)?;
            }
            fill(&view, &data, &self.generators)?;
        }
        if self.replay.workload.source == WorkloadSource::KernelBench {
            self.copy_from_file()?;
        }
        if self.inputs.values != FloatContents::Recorded {
            self.apply_values()?;
        }
        for (&at, storage) in self.storages.iter().filter(|(_, storage)| is_float(&storage.dtype)) {
            let flat = self.replay.flat(storage)?;
            if self.is_coarse(at) {
                helpers(self.replay.py)?.getattr("coarsen")?.call1((&flat, self.inputs.coarse.rounds))?;
            } else if self.inputs.widen.is_none() {
                self.jitter(at, &flat)?;
            }
            if let Some(terms) = self.inputs.terms {
                helpers(self.replay.py)?.getattr("replace_terms")?.call1((flat, terms == Terms::Doubled))?;
            }
        }
        Ok(())
    }

    /// Whether one of the storage's tensors is to hold coarse numbers.
    fn is_coarse(&self, storage: usize) -> bool {
        let is_named = |spec: &TensorSpec| self.inputs.coarse.tensors.contains(&spec.id);
        self.specs.iter().any(|(spec, _)| spec.storage == storage && is_named(spec))
    }

    /// Moves elements by their rounding error, if the inputs ask for it.
    fn jitter(&self, storage: usize, flat: &Bound<'py, PyAny>) -> PyResult<()> {
        let Some(seed) = self.inputs.jitter else { return Ok(()) };
        let seed = seed.wrapping_add(storage as u64) & 0x7fff_ffff_ffff;
        let moved = helpers(self.replay.py)?.getattr("jitter")?.call1((flat, seed))?;
        flat.call_method1("copy_", (moved,))?;
        Ok(())
    }

    /// Fills the tensors with the results of the file's own `get_inputs` instead of similar contents.
    fn copy_from_file(&self) -> PyResult<()> {
        let Replay { py, module, workload, .. } = self.replay;
        let inputs = model_inputs(*py, module, workload, self.inputs.seed)?;
        let made = DescribedArguments::tensors_of(&inputs)?;
        for ((spec, placed), tensor) in self.specs.iter().zip(made) {
            let mut view = self.replay.view(&self.storages[&spec.storage], &spec.dtype, placed)?;
            let mut from = tensor.call_method0("detach")?;
            for (dim, (&stride, &size)) in placed.stride.iter().zip(&placed.shape).enumerate() {
                // Elements with stride 0 are one element, which receives the first value.
                if stride == 0 && size > 1 {
                    view = view.call_method1("narrow", (dim, 0, 1))?;
                    from = from.call_method1("narrow", (dim, 0, 1))?;
                }
            }
            view.call_method1("copy_", (from,))?;
        }
        Ok(())
    }

    fn apply_values(&self) -> PyResult<()> {
        let apply = helpers(self.replay.py)?.getattr("apply")?;
        let values = serde_json::to_value((self.inputs.values, self.inputs.finite)).map_err(failed)?;
        let core = contents(self.replay.py)?.getattr("core")?;
        for (spec, placed) in self.specs.iter().filter(|(spec, _)| is_float(&spec.dtype) && !spec.shape.is_empty()) {
            let view = self.replay.view(&self.storages[&spec.storage], &spec.dtype, placed)?;
            let view = core.call1((view,))?;
            let (low, high) = bounds(&spec.data);
            let generator = self.generators.get_item(view.getattr("device")?.getattr("type")?)?;
            let finite = values[1].as_str().filter(|_| self.inputs.finite_in.is_none_or(|tensor| tensor == spec.id));
            let made = apply.call1((&view, values[0].as_str(), low, high, generator, finite))?;
            if !made.is_none() && !made.is(&view) {
                view.call_method1("copy_", (made,))?;
            }
        }
        Ok(())
    }

    /// The filled storages, with floats widened if the inputs ask for it.
    fn finish(mut self) -> PyResult<BTreeMap<usize, Storage<'py>>> {
        let Some(wide) = &self.inputs.widen else { return Ok(self.storages) };
        let replay = self.replay;
        let mut storages = std::mem::take(&mut self.storages);
        for (at, storage) in &mut storages {
            let is_one = self.specs.iter().all(|(spec, _)| spec.storage != *at || spec.dtype == storage.dtype);
            if !is_one || !is_widened(&storage.dtype, wide) {
                continue;
            }
            let narrow = replay.flat(storage)?;
            let size = storage.size / replay.item_size(&storage.dtype)? * replay.item_size(wide)?;
            let device: String = narrow.getattr("device")?.getattr("type")?.extract()?;
            let whole = guarded(replay.py, (size, &device), wide, storage.first, self.inputs)?;
            *storage = Storage { whole, size, dtype: wide.clone(), first: storage.first };
            let flat = replay.flat(storage)?;
            flat.call_method1("copy_", (narrow,))?;
            self.jitter(*at, &flat)?;
        }
        Ok(storages)
    }
}

/// The Python module for values and jitter.
pub(super) fn helpers(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    if torch_free::is_active(py) {
        return torch_free::module(py);
    }
    super::python_modules::inputs(py)
}

/// Whether a dtype is a float type narrower than `wide`.
fn is_widened(dtype: &str, wide: &str) -> bool {
    is_float(dtype) && dtype != "float64" && dtype != wide
}

fn is_by_value(data: &TensorContents) -> bool {
    matches!(data, TensorContents::Integers(_) | TensorContents::Floats(_))
}

/// Converts recorded values to objects over filled storages.
struct Binding<'r, 'py, 'a> {
    replay: &'r Replay<'py, 'a>,
    storages: &'r BTreeMap<usize, Storage<'py>>,
    sizes: &'r CallSizes<'r>,
    inputs: &'r Inputs,
    tensors: Vec<Option<Bound<'py, PyAny>>>,
}

impl<'py> Binding<'_, 'py, '_> {
    fn items(&mut self, items: &[ArgumentValue]) -> PyResult<Vec<Bound<'py, PyAny>>> {
        items.iter().map(|item| self.value(item)).collect()
    }

    fn value(&mut self, value: &ArgumentValue) -> PyResult<Bound<'py, PyAny>> {
        let py = self.replay.py;
        Ok(match value {
            ArgumentValue::None => py.None().into_bound(py),
            ArgumentValue::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
            ArgumentValue::Int(value) => self.sizes.integer(*value).into_pyobject(py)?.into_any(),
            ArgumentValue::Float(value) => value.into_pyobject(py)?.into_any(),
            ArgumentValue::Complex(parts) => match parts[..] {
                [real, imaginary] => PyComplex::from_doubles(py, real, imaginary).into_any(),
                _ => return Err(failed("a complex number has two parts")),
            },
            ArgumentValue::Str(value) => value.into_pyobject(py)?.into_any(),
            ArgumentValue::Dtype(name) => {
                let wide = self.inputs.widen.as_ref().filter(|wide| is_widened(name, wide));
                self.replay.torch_for("an element type")?.getattr(wide.unwrap_or(name).as_str())?
            }
            ArgumentValue::Device(name) => {
                let name = if name.starts_with("cuda") { self.replay.device } else { name };
                self.replay.torch_for("a device")?.call_method1("device", (name,))?
            }
            ArgumentValue::List(items) => PyList::new(py, self.items(items)?)?.into_any(),
            ArgumentValue::Tuple(items) => PyTuple::new(py, self.items(items)?)?.into_any(),
            ArgumentValue::Set(items) => PySet::new(py, self.items(items)?)?.into_any(),
            ArgumentValue::Dict(pairs) => {
                let dict = PyDict::new(py);
                for (key, item) in pairs {
                    dict.set_item(self.value(key)?, self.value(item)?)?;
                }
                dict.into_any()
            }
            ArgumentValue::Slice(parts) => {
                let parts = PyTuple::new(py, self.items(parts)?)?;
                py.get_type::<PySlice>().call1(parts)?
            }
            ArgumentValue::Global(reference) => self.global(reference)?,
            ArgumentValue::NamedTuple { class, items } => {
                let items = PyTuple::new(py, self.items(items)?)?;
                self.global(class)?.call1(items)?
            }
            ArgumentValue::Made { class, parts } => self.made(class, parts)?,
            ArgumentValue::Object { class, state } => self.object(class, state)?,
            ArgumentValue::Tensor(spec) => self.tensor(spec)?,
            ArgumentValue::Pointer(_) => return Err(failed("the tensor of a launch cannot be made again")),
            ArgumentValue::Opaque(name) => {
                return Err(failed(format!("an argument of type `{name}` cannot be made again")));
            }
        })
    }

    /// The object that the program knew under a name. The entry's own file is the one that is being called.
    fn global(&self, reference: &Reference) -> PyResult<Bound<'py, PyAny>> {
        let Replay { py, module, workload, .. } = self.replay;
        if reference.file.as_ref() == Some(&workload.file) {
            return resolve(module, &reference.path);
        }
        let holder = match (&reference.file, reference.module.as_str()) {
            (Some(file), "__main__") => super::models::load(*py, file)?,
            (_, name) => py.import(name)?.into_any(),
        };
        resolve(&holder, &reference.path)
    }

    fn object(&mut self, class: &Reference, state: &[(String, ArgumentValue)]) -> PyResult<Bound<'py, PyAny>> {
        let py = self.replay.py;
        let base = py.import("builtins")?.getattr("object")?;
        let object = base.call_method1("__new__", (self.global(class)?,))?;
        let state = state.iter().map(|(name, value)| Ok((name.as_str(), self.value(value)?)));
        restore(&object, state.collect::<PyResult<_>>()?)?;
        Ok(object)
    }

    fn made(&mut self, class: &Reference, parts: &[ArgumentValue]) -> PyResult<Bound<'py, PyAny>> {
        let class = self.global(class)?;
        let is_enumeration = class.cast::<PyType>().is_ok_and(|class| class.hasattr("__members__").unwrap_or(false));
        match parts {
            // The number of a flag is not a size.
            [ArgumentValue::Int(number)] if is_enumeration => class.call1((*number,)),
            _ => class.call1(PyTuple::new(self.replay.py, self.items(parts)?)?),
        }
    }

    fn tensor(&mut self, spec: &TensorSpec) -> PyResult<Bound<'py, PyAny>> {
        if self.tensors.len() <= spec.id {
            self.tensors.resize(spec.id + 1, None);
        }
        if let Some(tensor) = &self.tensors[spec.id] {
            return Ok(tensor.clone());
        }
        let storage = &self.storages[&spec.storage];
        let is_wide = self.inputs.widen.as_deref() == Some(&storage.dtype) && is_widened(&spec.dtype, &storage.dtype);
        let dtype = if is_wide { &storage.dtype } else { &spec.dtype };
        let mut tensor = self.replay.view(storage, dtype, &self.sizes.place(spec))?;
        if self.inputs.dense {
            let kwargs = PyDict::new(self.replay.py);
            if let Some(torch) = &self.replay.torch {
                kwargs.set_item("memory_format", torch.getattr("contiguous_format")?)?;
            }
            tensor = tensor.call_method("clone", (), Some(&kwargs))?;
        }
        if let Some(torch) = self.replay.torch.as_ref().filter(|_| spec.is_parameter) {
            let parameter = torch.getattr("nn")?.getattr("Parameter")?;
            tensor = parameter.call1((tensor, spec.requires_grad))?;
        } else if spec.requires_grad && self.replay.torch.is_some() {
            tensor.call_method1("requires_grad_", (true,))?;
        }
        self.tensors[spec.id] = Some(tensor.clone());
        Ok(tensor)
    }
}
