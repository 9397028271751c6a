//! Memory of the device that torch holds ready for its own process, though nothing uses it: others may want it.

use pyo3::prelude::*;

/// One part in so many of the device's memory may be held ready without being used, whatever the others need.
const SHARE_READY: u64 = 16;
/// More is given back where less than one part in so many is free. That takes a fifth of a second, in which all wait.
const SHARE_FREE: u64 = 4;

/// What torch has of the device in this process.
#[derive(Clone, Copy, Default)]
pub(super) struct Held {
    /// Bytes that it has taken from the driver.
    pub(super) taken: u64,
    /// Bytes of them that something uses.
    used: u64,
}

impl Held {
    /// Asks torch, which knows by itself.
    pub(super) fn by(torch: &Bound<'_, PyModule>) -> PyResult<Self> {
        let Some(known) = statistics(torch)? else { return Ok(Self::default()) };
        let bytes = |what: &str| known.get_item(what)?.get_item("all")?.get_item("current")?.extract();
        Ok(Self { taken: bytes("reserved_bytes")?, used: bytes("allocated_bytes")? })
    }

    /// Whether others may want what is ready.
    pub(super) fn is_much(self, torch: &Bound<'_, PyModule>) -> PyResult<bool> {
        Ok(self.taken.saturating_sub(self.used) > total(torch)? / SHARE_READY)
    }
}

/// How often memory of the device was asked of torch.
pub(super) fn allocations(torch: &Bound<'_, PyModule>) -> PyResult<u64> {
    let Some(known) = statistics(torch)? else { return Ok(0) };
    known.get_item("allocation")?.get_item("all")?.get_item("allocated")?.extract()
}

/// Torch's own statistics of the device's memory; `None` where nothing was allocated yet.
fn statistics<'py>(torch: &Bound<'py, PyModule>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let known = torch.getattr("cuda")?.call_method0("memory_stats_as_nested_dict")?;
    Ok(if known.is_empty()? { None } else { Some(known) })
}

/// Whether the device has little left.
pub(super) fn is_scarce(torch: &Bound<'_, PyModule>) -> PyResult<bool> {
    Ok(free(torch)? < total(torch)? / SHARE_FREE)
}

/// Bytes of the device that nobody has. Asking takes milliseconds beside other processes.
pub(super) fn free(torch: &Bound<'_, PyModule>) -> PyResult<u64> {
    torch.getattr("cuda")?.call_method1("mem_get_info", (0,))?.get_item(0)?.extract()
}

/// Gives back what is ready.
pub(super) fn give_back(torch: &Bound<'_, PyAny>) -> PyResult<()> {
    torch.getattr("cuda")?.call_method0("empty_cache").map(drop)
}

fn total(torch: &Bound<'_, PyModule>) -> PyResult<u64> {
    torch.getattr("cuda")?.call_method1("get_device_properties", (0,))?.getattr("total_memory")?.extract()
}
