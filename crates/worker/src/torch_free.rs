//! Kernels without torch: tensors of our own, their contents, and the comparison of results.
//!
//! The functions of [`module`] replace those of the same names in `contents.py` and `inputs.py`.

mod compare;
mod device;
mod leaf;
mod memory;
mod tensor;

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::errors::failed;
use crate::numbers::{ElementType, Spread};
use base::rng::Rng;
use memory::GuardedMemory;
use protocol::sizes::StorageLayout;
use tensor::Tensor;

pub(super) use compare::{TorchFreeComparer, serve};
pub(super) use device::start;
pub(super) use memory::{hollow, most_taken};

/// Why torch cannot be imported; `None` where it can. Determined once, before any file of the user is loaded.
pub(super) fn missing_torch(py: Python<'_>) -> PyResult<Option<&'static str>> {
    static MISSING: PyOnceLock<Option<String>> = PyOnceLock::new();
    let missing = MISSING.get_or_try_init(py, || match py.import("torch") {
        Ok(_) => Ok(None),
        Err(error) if error.is_instance_of::<PyImportError>(py) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
    })?;
    Ok(missing.as_deref())
}

/// Whether everything is done without torch.
pub(super) fn is_active(py: Python<'_>) -> bool {
    missing_torch(py).is_ok_and(|missing| missing.is_some())
}

/// The error for functions that need torch.
pub(super) fn wants_torch(py: Python<'_>, what: &str) -> PyErr {
    let why = missing_torch(py).ok().flatten().unwrap_or("it is there");
    failed(format!("{what} takes torch ({why}); a kernel with its grid, `entry=kernel[grid]`, does not"))
}

/// The class of our tensors.
pub(super) fn tensor_class(py: Python<'_>) -> Bound<'_, PyAny> {
    py.get_type::<Tensor>().into_any()
}

/// The functions on tensors, under the names of their Python counterparts.
pub(super) fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    const NAME: &str = "_warpsmith_raw";
    let modules = py.import("sys")?.getattr("modules")?;
    if let Ok(module) = modules.get_item(NAME) {
        return Ok(module.cast_into()?);
    }
    let module = PyModule::new(py, NAME)?;
    module.add_class::<GuardedMemory>()?;
    module.add_class::<Tensor>()?;
    module.add_function(wrap_pyfunction!(generators, &module)?)?;
    module.add_function(wrap_pyfunction!(guarded, &module)?)?;
    module.add_function(wrap_pyfunction!(view, &module)?)?;
    module.add_function(wrap_pyfunction!(distinct, &module)?)?;
    module.add_function(wrap_pyfunction!(fill_normal, &module)?)?;
    module.add_function(wrap_pyfunction!(fill_range, &module)?)?;
    module.add_function(wrap_pyfunction!(fill_values, &module)?)?;
    module.add_function(wrap_pyfunction!(apply, &module)?)?;
    module.add_function(wrap_pyfunction!(jitter, &module)?)?;
    module.add_function(wrap_pyfunction!(coarsen, &module)?)?;
    module.add_function(wrap_pyfunction!(settle, &module)?)?;
    module.add_function(wrap_pyfunction!(overruns, &module)?)?;
    module.add_function(wrap_pyfunction!(refill, &module)?)?;
    modules.set_item(NAME, &module)?;
    Ok(module)
}

/// An element type by its name.
fn element(name: &str) -> PyResult<ElementType> {
    let missing = || failed(format!("tensors of `{name}` take torch, which this interpreter does not have"));
    ElementType::of(name).ok_or_else(missing)
}

/// Bytes of an element.
pub(super) fn item_size(dtype: &str) -> PyResult<i64> {
    Ok(element(dtype)?.size as i64)
}

/// The random number generator for contents.
#[pyclass(frozen)]
struct Generator(AtomicU64);

impl Generator {
    /// A generator for one tensor, independent of how many numbers others draw.
    fn next(&self) -> Rng {
        Rng::new(Rng::new(self.0.fetch_add(1, Ordering::Relaxed)).bits())
    }
}

#[pyfunction]
fn generators<'py>(py: Python<'py>, devices: Vec<String>, seed: u64) -> PyResult<Bound<'py, PyDict>> {
    let generator = Bound::new(py, Generator(AtomicU64::new(Rng::new(seed).bits())))?;
    let all = PyDict::new(py);
    for device in devices {
        all.set_item(device, &generator)?;
    }
    Ok(all)
}

fn generator_of<'py>(
    view: &Tensor,
    generators: &Bound<'py, PyDict>,
    py: Python<'py>,
) -> PyResult<Bound<'py, Generator>> {
    let name = view.device(py)?.getattr("type")?;
    let found = generators.get_item(name)?.ok_or_else(|| failed("there is no random generator for this device"))?;
    Ok(found.cast_into()?)
}

#[pyfunction]
fn guarded(size: usize, device: &str, dtype: &str, index: usize, unmarked: bool) -> PyResult<GuardedMemory> {
    let guard = if unmarked { Default::default() } else { element(dtype)?.canary(index) };
    Ok(GuardedMemory::new(size, device == "cpu", guard))
}

#[pyfunction]
fn view(
    memory: &Bound<'_, GuardedMemory>,
    dtype: &str,
    shape: Vec<i64>,
    stride: Vec<i64>,
    offset: i64,
) -> PyResult<Tensor> {
    Tensor::new(memory.clone().unbind(), element(dtype)?, StorageLayout { shape, stride, offset }, memory.get().is_host)
}

/// Elements that share memory are one element here anyway.
#[pyfunction]
#[pyo3(name = "core")]
fn distinct<'py>(view: Bound<'py, Tensor>) -> Bound<'py, Tensor> {
    view
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "what `contents.py` takes")]
fn fill_normal(
    view: &Bound<'_, Tensor>,
    mean: f64,
    std: f64,
    low: f64,
    high: f64,
    zeros: f64,
    infinite: f64,
    kind: &str,
    generators: &Bound<'_, PyDict>,
) -> PyResult<()> {
    if !matches!(kind, "general" | "uniform") {
        return Err(wants_torch(view.py(), &format!("a tensor of {kind}")));
    }
    let spread = Spread { mean, std, low, high, zeros, infinite, is_uniform: kind == "uniform" };
    let mut chance = generator_of(view.get(), generators, view.py())?.get().next();
    view.get().change(|area| area.normal(&spread, &mut chance))?;
    Ok(())
}

#[pyfunction]
fn fill_range(
    view: &Bound<'_, Tensor>,
    low: i64,
    high: i64,
    is_sorted: bool,
    zeros: f64,
    generators: &Bound<'_, PyDict>,
) -> PyResult<()> {
    if is_sorted {
        return Err(wants_torch(view.py(), "a tensor of ascending numbers"));
    }
    let mut chance = generator_of(view.get(), generators, view.py())?.get().next();
    view.get().change(|area| area.range(low, high, zeros, &mut chance))?;
    Ok(())
}

#[pyfunction]
fn fill_values(view: &Bound<'_, Tensor>, values: &Bound<'_, PyAny>) -> PyResult<()> {
    if view.get().element.is_float() {
        let values: Vec<f64> = values.extract()?;
        view.get().change(|area| area.values(values.into_iter()))?;
    } else {
        let mut values = values.extract::<Vec<i64>>()?.into_iter();
        view.get().change(|area| area.integers(|| values.next().unwrap_or_default()))?;
    }
    Ok(())
}

/// As in `inputs.py`. Without torch `finite` replacements are never requested.
#[pyfunction]
#[pyo3(signature = (view, values, low, high, generator, finite=None))]
fn apply(
    view: &Bound<'_, Tensor>,
    values: &str,
    low: f64,
    high: f64,
    generator: &Bound<'_, Generator>,
    finite: Option<&str>,
) -> PyResult<()> {
    if finite.is_some() {
        return Err(failed("numbers in place of what is not finite are made with torch only"));
    }
    let mut chance = generator.get().next();
    match view.get().change(|area| area.apply(values, (low, high), &mut chance))? {
        Some(Err(why)) => Err(failed(why)),
        _ => Ok(()),
    }
}

/// Works in place, so it returns nothing.
#[pyfunction]
fn jitter(flat: &Bound<'_, Tensor>, seed: u64) -> PyResult<()> {
    flat.get().change(|area| area.jitter(seed))?;
    Ok(())
}

#[pyfunction]
fn coarsen(flat: &Bound<'_, Tensor>, rounds: bool) -> PyResult<()> {
    flat.get().change(|area| area.coarsen(rounds))?;
    Ok(())
}

/// Copies contents that are complete to the place where they are needed.
#[pyfunction]
fn settle(memory: &Bound<'_, GuardedMemory>) -> PyResult<()> {
    memory.get().settle()
}

#[pyfunction]
fn overruns(storages: Vec<(Bound<'_, GuardedMemory>, usize, String, usize)>) -> PyResult<Vec<i64>> {
    let overrun = |(memory, _, dtype, index): &(Bound<'_, GuardedMemory>, usize, String, usize)| {
        let element = self::element(dtype)?;
        memory.get().overrun(element.canary(*index), element.size)
    };
    storages.iter().map(overrun).collect()
}

#[pyfunction]
fn refill(
    memory: &Bound<'_, GuardedMemory>,
    other: &Bound<'_, GuardedMemory>,
    size: usize,
    which: &str,
    seed: u64,
) -> PyResult<()> {
    // Whole elements, whatever the type.
    let range = match which {
        "middle" => size / 3 / 16 * 16..size - size / 3 / 16 * 16,
        "few" if size > 16 => {
            let first = Rng::new(seed).below((size / 16) as u64) as usize * 16;
            first..first + 16
        }
        _ => 0..size,
    };
    memory.get().copy(other.get(), memory::GUARD + range.start..memory::GUARD + range.end)
}
