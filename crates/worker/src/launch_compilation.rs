//! Drafts: compiled kernels with their launches, for the performance model.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use object::{Object as _, ObjectSection as _};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use protocol::{CompiledLaunch, CompiledLaunches, KernelArgument, LaunchRecord, SimulatedGpu};

use super::launch::launch_record;
use super::python_modules::helper;

/// The child process drafts one candidate at a time on one thread.
static DRAFTS: Mutex<CompiledLaunches> =
    Mutex::new(CompiledLaunches { launches: Vec::new(), inputs: Vec::new(), results: Vec::new() });
/// Whether compiled kernels are kept as drafts.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The number of the autotuner whose configurations are being compiled; it is odd while one is.
static CHOICE: AtomicU64 = AtomicU64::new(0);

/// The format of an attribute in a kernel's `.nv.info` whose values follow it.
const SIZED: u8 = 4;
/// The attribute with the kernel's index and its number of registers.
const REGISTERS: u8 = 0x2f;
/// The attribute with the kernel's index and its stack size in bytes.
const FRAME: u8 = 0x11;

/// A digest of the code that was compiled since the last call.
static CODE: Mutex<Code> = Mutex::new(Code::Nothing);

/// A digest of kernels' machine code and their launch parameters.
enum Code {
    Nothing,
    Some(Box<blake3::Hasher>),
    /// The machine code of a kernel could not be read.
    Unknown,
}

fn drafted(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_compiled_kernels", include_str!("compiled_kernels.py"))
}

/// Simulates the properties of the GPU that this process compiles for, if it has none itself.
pub(super) fn simulate_gpu(py: Python<'_>) -> PyResult<bool> {
    let Some(device) = SimulatedGpu::here() else { return Ok(false) };
    install(py, "install", &device)?;
    Ok(true)
}

/// Compiles for a device of this machine without a connection to it.
pub(super) fn compile_only(py: Python<'_>, device: &SimulatedGpu) -> PyResult<()> {
    install(py, "compile_only", device)
}

fn install(py: Python<'_>, how: &str, device: &SimulatedGpu) -> PyResult<()> {
    let played = helper(py, "_warpsmith_simulated_gpu", include_str!("simulated_gpu.py"))?;
    let SimulatedGpu { name, capability, multiprocessors, shared } = device;
    played.getattr(how)?.call1((name, capability, multiprocessors, shared)).map(drop)
}

/// Calls `compile`, which compiles all configurations of an autotuner.
pub(super) fn choosing<T>(compile: impl FnOnce() -> T) -> T {
    CHOICE.fetch_add(1, Ordering::Relaxed);
    let out = compile();
    CHOICE.fetch_add(1, Ordering::Relaxed);
    out
}

/// Sets whether compiled kernels are kept.
pub(super) fn want(drafts: bool) {
    WANTED.store(drafts, Ordering::Relaxed);
}

/// The launches that were compiled since the last call.
pub(super) fn take() -> CompiledLaunches {
    std::mem::take(&mut drafts())
}

fn drafts() -> MutexGuard<'static, CompiledLaunches> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the memory ranges of a call's arguments and results, where that is wanted.
pub(super) fn ends(arguments: &[Bound<'_, PyAny>], results: &Bound<'_, PyAny>) -> PyResult<()> {
    if WANTED.load(Ordering::Relaxed) {
        let memories = drafted(results.py())?.getattr("memories")?;
        let of_arguments = memories.call1((PyList::new(results.py(), arguments)?,))?.extract()?;
        let of_results = memories.call1((results,))?.extract()?;
        let mut drafts = drafts();
        (drafts.inputs, drafts.results) = (of_arguments, of_results);
    }
    Ok(())
}

/// A key of the code that was compiled since the last call, which differs from that of any code that computes something
/// else or takes another time. `None` if nothing was compiled, or the code could not be read.
pub(super) fn take_code() -> Option<String> {
    match std::mem::replace(&mut *CODE.lock().unwrap_or_else(PoisonError::into_inner), Code::Nothing) {
        Code::Some(hasher) => Some(hasher.finalize().to_hex().to_string()),
        Code::Nothing | Code::Unknown => None,
    }
}

/// Keeps the compiled kernel of a launch.
pub(super) fn keep(
    function: &Bound<'_, PyAny>,
    call: (&Bound<'_, PyTuple>, &Bound<'_, PyDict>),
    compiled: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let is_wanted = WANTED.load(Ordering::Relaxed);
    let drafted = look(function, call, compiled);
    {
        let mut code = CODE.lock().unwrap_or_else(PoisonError::into_inner);
        let so_far = std::mem::replace(&mut *code, Code::Unknown);
        let digest = drafted.as_ref().ok().and_then(|(drafted, machine_code)| digest(drafted, machine_code));
        *code = match (so_far, digest) {
            (Code::Nothing, Some(digest)) => Code::Some(Box::new(blake3::Hasher::new().update(&digest).clone())),
            (Code::Some(mut so_far), Some(digest)) => {
                so_far.update(&digest);
                Code::Some(so_far)
            }
            _ => Code::Unknown,
        };
    }
    if is_wanted {
        let drafted = drafted?.0;
        drafts().launches.push(drafted);
    }
    Ok(())
}

/// A digest of a launch, without source locations, which do not affect the device.
fn digest(drafted: &CompiledLaunch, machine_code: &[u8]) -> Option<[u8; 32]> {
    let file = object::File::parse(machine_code).ok()?;
    let mut hasher = blake3::Hasher::new();
    for section in file.sections() {
        let name = section.name().ok()?;
        if [".text", ".nv.info", ".nv.constant", ".nv.shared"].iter().any(|kind| name.starts_with(kind)) {
            hasher.update(name.as_bytes()).update(section.data().ok()?);
        }
    }
    let CompiledLaunch { grid, parameters, shared, warps, choice, .. } = drafted;
    hasher.update(format!("{grid:?} {parameters:?} {shared} {warps} {}", choice.is_some()).as_bytes());
    Some(*hasher.finalize().as_bytes())
}

/// The draft of a launch, and its machine code.
fn look(
    function: &Bound<'_, PyAny>,
    (args, kwargs): (&Bound<'_, PyTuple>, &Bound<'_, PyDict>),
    compiled: &Bound<'_, PyAny>,
) -> PyResult<(CompiledLaunch, Vec<u8>)> {
    let helper = drafted(function.py())?;
    let LaunchRecord { grid, keywords, .. } = launch_record(function, kwargs, args)?;
    let given: Vec<Option<(i64, Option<f64>, u64)>> =
        helper.getattr("parameters")?.call1((compiled, function, args, kwargs))?.extract()?;
    type CompiledResources = (String, String, Vec<u8>, u32, u32, u32);
    let (kernel, text, code, shared, warps, stages): CompiledResources =
        helper.getattr("resources")?.call1((compiled,))?.extract()?;
    let (registers, stack) = registers(&code).unwrap_or_default();
    let parameter = |found: &Option<(i64, Option<f64>, u64)>| match *found {
        Some((offset, Some(bytes), _)) => KernelArgument::Tensor { offset, bytes },
        Some((value, None, _)) => KernelArgument::Int(value),
        None => KernelArgument::Other,
    };
    let parameters = given.iter().map(parameter).collect();
    let memories = given.iter().map(|found| found.map_or(0, |(.., memory)| memory)).collect();
    let choice = Some(CHOICE.load(Ordering::Relaxed)).filter(|choice| choice % 2 == 1);
    let drafted = CompiledLaunch {
        kernel,
        grid,
        parameters,
        memories,
        text,
        registers,
        stack,
        shared,
        warps,
        stages,
        choice,
        keywords,
    };
    Ok((drafted, code))
}

/// The registers and the stack bytes per thread of the only kernel in a `cubin`.
fn registers(code: &[u8]) -> Option<(u32, u32)> {
    let file = object::File::parse(code).ok()?;
    let section = file.section_by_name(".nv.info")?;
    let mut rest = section.data().ok()?;
    let (mut registers, mut stack) = (None, 0);
    while let [format, attribute, low, high, after @ ..] = rest {
        let size = if *format == SIZED { usize::from(u16::from_le_bytes([*low, *high])) } else { 0 };
        let value = || Some(u32::from_le_bytes(after.get(4..8)?.try_into().ok()?));
        match (*format, *attribute) {
            (SIZED, REGISTERS) => registers = value(),
            (SIZED, FRAME) => stack = value()?,
            _ => {}
        }
        rest = after.get(size..)?;
    }
    Some((registers?, stack))
}
