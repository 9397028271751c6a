//! Device memory that torch caches for its process although nothing uses it, while other processes may need it.

use pyo3::prelude::*;

/// One part in this many of the device's memory may be cached without being used, whatever the others need.
const SHARE_READY: u64 = 16;
/// Cached memory above that is released where less than one part in this many is free. That takes a fifth of a second, in
/// which all processes wait.
const SHARE_FREE: u64 = 4;

/// The device memory that torch holds in this process.
#[derive(Clone, Copy, Default)]
pub(super) struct TorchMemory {
    /// Bytes that torch has allocated from the driver.
    pub(super) taken: u64,
    /// The part of them that is in use.
    used: u64,
}

impl TorchMemory {
    /// Queries torch's own counters.
    pub(super) fn by(torch: &Bound<'_, PyModule>) -> PyResult<Self> {
        let Some(known) = statistics(torch)? else { return Ok(Self::default()) };
        let bytes = |what: &str| known.get_item(what)?.get_item("all")?.get_item("current")?.extract();
        Ok(Self { taken: bytes("reserved_bytes")?, used: bytes("allocated_bytes")? })
    }

    /// Whether the unused memory is so much that other processes may need it.
    pub(super) fn is_large(self, torch: &Bound<'_, PyModule>) -> PyResult<bool> {
        Ok(self.taken.saturating_sub(self.used) > total(torch)? / SHARE_READY)
    }
}

/// The number of device memory allocations through torch.
pub(super) fn allocations(torch: &Bound<'_, PyModule>) -> PyResult<u64> {
    let Some(known) = statistics(torch)? else { return Ok(0) };
    known.get_item("allocation")?.get_item("all")?.get_item("allocated")?.extract()
}

/// Torch's statistics of device memory; `None` where nothing was allocated yet.
fn statistics<'py>(torch: &Bound<'py, PyModule>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let known = torch.getattr("cuda")?.call_method0("memory_stats_as_nested_dict")?;
    Ok(if known.is_empty()? { None } else { Some(known) })
}

/// Whether the device has little free memory.
pub(super) fn is_scarce(torch: &Bound<'_, PyModule>) -> PyResult<bool> {
    Ok(free(torch)? < total(torch)? / SHARE_FREE)
}

/// Free bytes of the device. The query takes milliseconds while other processes use the device.
pub(super) fn free(torch: &Bound<'_, PyModule>) -> PyResult<u64> {
    torch.getattr("cuda")?.call_method1("mem_get_info", (0,))?.get_item(0)?.extract()
}

/// Releases the unused memory.
pub(super) fn release(torch: &Bound<'_, PyAny>) -> PyResult<()> {
    torch.getattr("cuda")?.call_method0("empty_cache").map(drop)
}

fn total(torch: &Bound<'_, PyModule>) -> PyResult<u64> {
    torch.getattr("cuda")?.call_method1("get_device_properties", (0,))?.getattr("total_memory")?.extract()
}
