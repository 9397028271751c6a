//! The CUDA devices and drivers of this machine, queried without creating a context.
//!
//! The driver library is loaded at run time, so that the binary starts on machines without it. Only functions that need
//! no context are called, so the server holds no device memory.

use std::panic::{UnwindSafe, catch_unwind};
use std::sync::OnceLock;

use cudarc::driver::{DriverError, result, sys};

use base::clock::now_milliseconds;
use protocol::{FAKE_DEVICE_ENV, SimulatedGpu, is_simulated};
use runtime::python::ComputeDevice;

use super::{Device, Devices};

/// The utilization of the multiprocessors, in percent, below which a program counts as idle.
const AT_WORK: u32 = 5;
/// For how many microseconds a program that has computed still counts as computing.
const LATELY: u64 = 2_000_000;
/// The suffix of the names of simulated devices.
const SIMULATED: &str = " (simulated)";

/// The versions of the drivers, each `None` where it is not installed.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Drivers {
    /// The newest CUDA version that the driver library supports, for example `12.8`.
    pub cuda: Option<String>,
    /// The version of the kernel driver, for example `570.86.15`.
    pub kernel: Option<String>,
}

impl Device {
    /// Whether the device is simulated for a test.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        is_stand_in(&self.name)
    }
}

/// Whether a device of this name is simulated, on this machine or elsewhere.
#[must_use]
pub fn is_stand_in(name: &str) -> bool {
    name.ends_with(SIMULATED)
}

/// The suffix of the names of GPUs that a model predicts.
const PREDICTED: &str = " (predicted)";

/// The device name of a GPU that a model predicts.
pub(super) fn predicted(name: &str) -> String {
    format!("{name}{PREDICTED}")
}

/// The name of the GPU if `name` is the device name of a predicted GPU, otherwise `None`.
#[must_use]
pub fn is_predicted(name: &str) -> Option<&str> {
    name.strip_suffix(PREDICTED)
}

/// Finds the CUDA devices without creating a context. The first call takes up to a second, so the main thread must not
/// make it.
///
/// [`FAKE_DEVICE_ENV`] replaces the real devices by a simulated one of that name, for tests without a GPU.
#[must_use]
pub fn devices() -> Devices {
    if let Ok(name) = std::env::var(FAKE_DEVICE_ENV)
        && !name.is_empty()
    {
        let name = format!("{name}{SIMULATED}");
        return Devices::Found(vec![Device { name, capability: (0, 0), uuid: "GPU-simulated".to_owned() }]);
    }
    static FOUND: OnceLock<Devices> = OnceLock::new();
    FOUND.get_or_init(|| guarded(find).unwrap_or_else(Devices::Missing)).clone()
}

/// The versions of the installed drivers.
#[must_use]
pub fn drivers() -> Drivers {
    let kernel = nvml_wrapper::Nvml::init().and_then(|nvml| nvml.sys_driver_version()).ok();
    Drivers { cuda: guarded(cuda_version).ok().flatten(), kernel }
}

/// Calls `ask`. Fails when no driver library can be loaded, or when it is too old.
fn guarded<T>(ask: impl FnOnce() -> T + UnwindSafe) -> Result<T, String> {
    #[expect(unsafe_code, reason = "loads libcuda, whose initialisers are trusted as the driver itself is")]
    let present = catch_unwind(|| unsafe { sys::is_culib_present() }).unwrap_or(false);
    if !present {
        return Err("no NVIDIA driver on this machine (libcuda was not found)".to_owned());
    }
    // cudarc panics when an old driver lacks a function.
    catch_unwind(ask).map_err(|_| "the NVIDIA driver is too old to list its devices: update it".to_owned())
}

fn find() -> Devices {
    match list() {
        Ok(devices) if devices.is_empty() => Devices::Missing(
            "the NVIDIA driver is installed but shows no device (is CUDA_VISIBLE_DEVICES set?)".to_owned(),
        ),
        Ok(devices) => Devices::Found(devices),
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Devices::Missing(
            "the NVIDIA driver is installed but finds no device (is there one, and is CUDA_VISIBLE_DEVICES unset?)"
                .to_owned(),
        ),
        Err(error) => Devices::Missing(format!(
            "the NVIDIA driver does not start ({}): does `nvidia-smi` work?",
            // This uses the name of the enum's variant, since asking the driver for a text is another call that may
            // fail.
            format!("{:?}", error.0).trim_start_matches("CUDA_ERROR_").to_lowercase().replace('_', " ")
        )),
    }
}

fn list() -> Result<Vec<Device>, DriverError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    result::init()?;
    (0..result::device::get_count()?)
        .map(|ordinal| {
            let device = result::device::get(ordinal)?;
            #[expect(unsafe_code, reason = "the device handle comes from the driver a line above")]
            let attribute = |which| unsafe { result::device::get_attribute(device, which) };
            let capability = (attribute(MAJOR)?, attribute(MINOR)?);
            let uuid = written(result::device::get_uuid(device)?.bytes.map(|byte| byte as u8));
            Ok(Device { name: result::device::get_name(device)?, capability, uuid })
        })
        .collect()
}

/// The UUID in the format of NVML and of `CUDA_VISIBLE_DEVICES`.
fn written(uuid: [u8; 16]) -> String {
    let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("GPU-{}", groups.join("-"))
}

/// The size and speed of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DeviceMemory {
    /// The size of the memory in bytes.
    pub(super) size: u64,
    /// The size of the L2 cache in bytes.
    pub(super) l2: u64,
    /// The bandwidth in bytes per second, by the memory's clock and bus width.
    pub(super) bytes_per_second: f64,
}

/// The memory of the first device; `None` without a device, or where the driver does not report it.
pub(super) fn memory() -> Option<DeviceMemory> {
    static FOUND: OnceLock<Option<DeviceMemory>> = OnceLock::new();
    *FOUND.get_or_init(|| if is_simulated() { None } else { guarded(ask_memory).ok()? })
}

fn ask_memory() -> Option<DeviceMemory> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH as WIDTH, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE as L2,
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE as CLOCK,
    };
    result::init().ok()?;
    let device = result::device::get(0).ok()?;
    #[expect(unsafe_code, reason = "the device handle comes from the driver a line above")]
    let attribute = |which| unsafe { result::device::get_attribute(device, which) }.ok().filter(|&value| value > 0);
    // The clock is in kHz, the width in bits; two transfers a clock.
    let bytes_per_second = f64::from(attribute(CLOCK)?) * 1000.0 * 2.0 * f64::from(attribute(WIDTH)?) / 8.0;
    #[expect(unsafe_code, reason = "the device handle comes from the driver above")]
    let size = u64::try_from(unsafe { result::device::total_mem(device) }.ok()?).ok()?;
    Some(DeviceMemory { size, l2: u64::try_from(attribute(L2)?).ok()?, bytes_per_second })
}

/// The parameters that compiling for a device needs, without a connection to the device; `None` where the driver does
/// not report them.
pub(super) fn simulated_gpu(uuid: &str) -> Option<SimulatedGpu> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as SHARED,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as COUNT,
    };
    if is_simulated() {
        return None;
    }
    let Devices::Found(found) = devices() else { return None };
    let (ordinal, device) = (0..).zip(&found).find(|(_, device)| device.uuid == uuid)?;
    let asked = guarded(|| {
        result::init().ok()?;
        let handle = result::device::get(ordinal).ok()?;
        #[expect(unsafe_code, reason = "the device handle comes from the driver a line above")]
        let attribute = |which| u32::try_from(unsafe { result::device::get_attribute(handle, which) }.ok()?).ok();
        Some((attribute(COUNT)?, attribute(SHARED)?))
    });
    let (multiprocessors, shared) = asked.ok()??;
    let (major, minor) = device.capability;
    let capability = u32::try_from(10 * major + minor).ok()?;
    Some(SimulatedGpu { name: device.name.clone(), capability, multiprocessors, shared })
}

/// The ids of the processes that have computed on any device recently.
pub(super) fn at_work() -> Vec<u32> {
    let Some(nvml) = nvml() else { return Vec::new() };
    let devices = (0..nvml.device_count().unwrap_or(0)).filter_map(|index| nvml.device_by_index(index).ok());
    devices.flat_map(|device| at_work_on(&device)).collect()
}

fn at_work_on(device: &nvml_wrapper::Device<'_>) -> Vec<u32> {
    // Graphics processes, such as displays and browsers, do not count.
    let computing: Vec<u32> =
        device.running_compute_processes().unwrap_or_default().iter().map(|process| process.pid).collect();
    let samples = device.process_utilization_stats(None).unwrap_or_default();
    let now = u64::try_from(now_milliseconds()).unwrap_or(0) * 1000;
    let busy = samples.iter().filter(|sample| sample.sm_util >= AT_WORK && sample.timestamp + LATELY >= now);
    busy.map(|sample| sample.pid).filter(|id| computing.contains(id)).collect()
}

/// NVML, NVIDIA's library for monitoring devices, where it is installed.
fn nvml() -> Option<&'static nvml_wrapper::Nvml> {
    static NVML: OnceLock<Option<nvml_wrapper::Nvml>> = OnceLock::new();
    NVML.get_or_init(|| nvml_wrapper::Nvml::init().ok()).as_ref()
}

/// The current clock of a device's multiprocessors in MHz, where NVML reports it.
pub(super) fn clock(uuid: &str) -> Option<u32> {
    nvml()?.device_by_uuid(uuid).ok()?.clock_info(nvml_wrapper::enum_wrappers::device::Clock::SM).ok()
}

/// The free memory of a device in bytes, where NVML reports it.
pub(super) fn free(uuid: &str) -> Option<u64> {
    Some(nvml()?.device_by_uuid(uuid).ok()?.memory_info().ok()?.free)
}

/// The device with this index, and how a forker selects it: by its device file, where it is the only device and its
/// file is known.
pub(super) fn one(device: Option<usize>) -> (ComputeDevice, Option<Device>) {
    let found = match devices() {
        Devices::Found(found) => found,
        Devices::Missing(_) => Vec::new(),
    };
    let is_only = device.is_some() || found.len() == 1;
    let own = found.into_iter().nth(device.unwrap_or(0));
    let node = own.as_ref().filter(|_| is_only).and_then(|own| Some((own.uuid.clone(), node(&own.uuid)?)));
    let on = match node {
        Some((uuid, node)) => ComputeDevice::Node { uuid, node },
        None => device.map_or(ComputeDevice::Devices, ComputeDevice::Device),
    };
    (on, own)
}

/// The number of a device's file, where NVML reports it. A MIG instance has device files with other names, and the UUID
/// of the whole device does not identify it.
fn node(uuid: &str) -> Option<u32> {
    if is_simulated() {
        return None;
    }
    let device = nvml()?.device_by_uuid(uuid).ok()?;
    let is_parted = device.mig_mode().is_ok_and(|mode| mode.current != 0);
    if is_parted { None } else { device.minor_number().ok() }
}

fn cuda_version() -> Option<String> {
    let mut version = 0;
    #[expect(unsafe_code, reason = "writes one integer, needs no initialisation")]
    let status = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    (status == sys::CUresult::CUDA_SUCCESS && version > 0)
        .then(|| format!("{}.{}", version / 1000, version % 1000 / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_missing_with_a_reason_without_a_driver() {
        match devices() {
            Devices::Missing(why) => assert!(why.contains("NVIDIA driver"), "{why}"),
            Devices::Found(found) => assert!(found.iter().all(|device| !device.name.is_empty())),
        }
    }

    #[test]
    fn uuids_are_written_in_nvmls_format() {
        let uuid = std::array::from_fn(|at| at as u8 * 17);
        assert_eq!(written(uuid), "GPU-00112233-4455-6677-8899-aabbccddeeff");
    }

    #[test]
    fn simulated_devices_are_recognized_by_their_name() {
        let device = |name: &str| Device { name: name.to_owned(), capability: (0, 0), uuid: String::new() };
        assert!(device("H200 (simulated)").is_simulated());
        assert!(!device("NVIDIA H200").is_simulated());
    }
}
