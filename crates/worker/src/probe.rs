//! Probes of the least that a call needs: the parts of its arguments that its results depend on, and the copy rate of
//! the device's memory.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use protocol::runner::{ArgumentUse, Inputs, MemoryProbe, Reuse};

use super::python_modules::{helper, poison};
use super::replay::ReplayedArguments;
use super::runner::{Runner, within};
use super::timing::Timer;
use super::values::contents;

/// The most tensor arguments that are probed, the greatest first.
const LOOKED_AT: usize = 6;
/// The number of bytes that are copied to measure the copy rate, and the number of copies.
const COPIED: u64 = 512 << 20;
const COPIES: usize = 5;

fn needs(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    poison(py)?;
    contents(py)?;
    helper(py, "_warpsmith_argument_needs", include_str!("argument_needs.py"))
}

impl<'py> Runner<'py, '_> {
    /// Calls the entry with other contents in one part of one argument at a time, and determines whether the results
    /// differ.
    pub(super) fn probe(&self, wanted: &MemoryProbe) -> PyResult<Option<Vec<ArgumentUse>>> {
        if self.replay.torch.is_none() {
            return Ok(None);
        }
        let deadline = Instant::now() + Duration::from_millis(wanted.milliseconds);
        let mut all: Vec<ArgumentUse> = Vec::new();
        for inputs in &wanted.inputs {
            self.reset_weights(inputs)?;
            let (given, working) = (self.replay.arguments(inputs)?, self.replay.arguments(inputs)?);
            let Some(found) = self.probe_one(wanted, inputs, (&given, &working), deadline)? else {
                return Ok(None);
            };
            for one in found {
                match all.iter_mut().find(|before| before.argument == one.argument) {
                    Some(before) => {
                        before.tried += one.tried;
                        before.needed += one.needed;
                        before.written = before.written.min(one.written);
                    }
                    None => all.push(one),
                }
            }
        }
        Ok(Some(all))
    }

    fn probe_one(
        &self,
        wanted: &MemoryProbe,
        inputs: &Inputs,
        (given, working): (&ReplayedArguments<'py>, &ReplayedArguments<'py>),
        deadline: Instant,
    ) -> PyResult<Option<Vec<ArgumentUse>>> {
        let needs = needs(self.py)?;
        let call = || -> PyResult<Bound<'py, PyList>> {
            self.seed(inputs)?;
            let poisoning = self.poisoning()?;
            let (out, gradients) = within(&[&poisoning], || {
                let out = self.invoke(working)?;
                let gradients = if wanted.gradients { self.gradients(&out, working, inputs)? } else { Vec::new() };
                Ok((out, gradients))
            })?;
            self.synchronize()?;
            let results = PyList::empty(self.py);
            needs.getattr("gather")?.call1((out, &results))?;
            for (_, gradient) in gradients {
                needs.getattr("gather")?.call1((gradient, &results))?;
            }
            Ok(results)
        };
        let base = needs.getattr("Snapshot")?.call1((call()?, working.tensors.clone(), given.tensors.clone()))?;
        let written: Vec<u64> = base.getattr("written")?.extract()?;
        working.refill(given, Reuse::All, 0)?;
        if base.call_method1("differs", (call()?, working.tensors.clone()))?.is_truthy()? {
            return Ok(None);
        }
        let mut all = Vec::new();
        for at in self.looked_at(given)? {
            let tensor = &given.tensors[at];
            let element: u64 = tensor.getattr("itemsize")?.extract()?;
            let count: u64 = needs.getattr("core")?.call1((tensor,))?.call_method0("numel")?.extract()?;
            let mut touched =
                ArgumentUse { argument: at, bytes: count * element, written: written[at], ..ArgumentUse::default() };
            let parts: Vec<(u64, u64)> = match needs.getattr("can_be_asked")?.call1((tensor,))?.is_truthy()? {
                true => needs.getattr("sectors")?.call1((tensor, wanted.parts, inputs.seed))?.extract()?,
                false => Vec::new(),
            };
            let values: Vec<f64> =
                if parts.is_empty() { Vec::new() } else { needs.getattr("others")?.call1((tensor,))?.extract()? };
            for part in parts {
                if Instant::now() > deadline {
                    break;
                }
                touched.tried += 1;
                for &value in &values {
                    working.refill(given, Reuse::All, 0)?;
                    needs.getattr("put")?.call1((&working.tensors[at], part.0, part.1, value))?;
                    let asked = (call()?, working.tensors.clone(), at, part, value);
                    if base.call_method1("differs", asked)?.is_truthy()? {
                        touched.needed += 1;
                        break;
                    }
                }
            }
            all.push(touched);
        }
        Ok(Some(all))
    }

    /// The greatest tensor of each storage, and the greatest of those.
    fn looked_at(&self, arguments: &ReplayedArguments<'py>) -> PyResult<Vec<usize>> {
        let mut all: Vec<(u64, usize, usize)> = Vec::new();
        for (at, tensor) in arguments.tensors.iter().enumerate() {
            let of = needs(self.py)?.getattr("core")?.call1((tensor,))?;
            let bytes = of.call_method0("numel")?.extract::<u64>()? * of.getattr("itemsize")?.extract::<u64>()?;
            let storage: usize = tensor.call_method0("untyped_storage")?.call_method0("data_ptr")?.extract()?;
            match all.iter_mut().find(|(_, _, other)| *other == storage) {
                Some(other) if other.0 < bytes => *other = (bytes, at, storage),
                Some(_) => {}
                None => all.push((bytes, at, storage)),
            }
        }
        all.sort_by_key(|(bytes, at, _)| (std::cmp::Reverse(*bytes), *at));
        Ok(all.into_iter().take(LOOKED_AT).map(|(_, at, _)| at).collect())
    }

    /// Bytes per second that the device reads and writes when it copies.
    pub(super) fn copy_rate(&mut self) -> PyResult<Option<f64>> {
        let Some(torch) = self.replay.torch.clone().filter(|_| !self.simulated) else { return Ok(None) };
        if self.timer.is_none() {
            self.timer = Some(Timer::new(self.py, false)?);
        }
        let Some(timer) = &self.timer else { return Ok(None) };
        let options = PyDict::new(self.py);
        options.set_item("dtype", torch.getattr("uint8")?)?;
        options.set_item("device", self.replay.device)?;
        let made = || torch.call_method("zeros", (COPIED,), Some(&options));
        // Without enough memory the rate cannot be measured.
        let (Ok(from), Ok(to)) = (made(), made()) else { return Ok(None) };
        let mut spans = Vec::new();
        for _ in 0..COPIES {
            spans.push(timer.measure(|| to.call_method1("copy_", (&from,)).map(drop))?);
        }
        timer.synchronize()?;
        drop((from, to));
        super::torch_memory::release(&torch)?;
        let times =
            spans.into_iter().map(super::timing::PendingTiming::milliseconds).collect::<PyResult<Vec<f64>>>()?;
        let least = times.into_iter().fold(f64::INFINITY, f64::min);
        Ok((least > 0.0 && least.is_finite()).then(|| 2.0 * COPIED as f64 / least * 1000.0))
    }
}
