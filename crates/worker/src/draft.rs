//! What was compiled, for a model that goes through it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use object::{Object as _, ObjectSection as _};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use protocol::{Drafted, Drafts, LaunchRecord, Parameter, Played};

use super::helper;
use super::launch::launch_record;

/// The child process drafts one candidate on one thread.
static DRAFTS: Mutex<Drafts> = Mutex::new(Drafts { launches: Vec::new(), inputs: Vec::new(), results: Vec::new() });
/// Whether they are kept.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The tuner whose choices are compiled at present, by a number that is odd.
static CHOICE: AtomicU64 = AtomicU64::new(0);

/// An attribute of a kernel's `.nv.info`: what of it, and the values behind.
const SIZED: u8 = 4;
/// The kernel's index and its registers.
const REGISTERS: u8 = 0x2f;
/// The kernel's index and its bytes of stack.
const FRAME: u8 = 0x11;

/// What was compiled since this was asked last, in so far as the device sees it.
static CODE: Mutex<Code> = Mutex::new(Code::Nothing);

/// Machine code of kernels, and what they are launched with, as one number.
enum Code {
    Nothing,
    Some(Box<blake3::Hasher>),
    /// One of them could not be looked into.
    Unknown,
}

fn drafted(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    helper(py, "_warpsmith_drafted", include_str!("drafted.py"))
}

/// Plays the GPU that this process compiles for, if it does not have one.
pub(super) fn play(py: Python<'_>) -> PyResult<bool> {
    let Some(device) = Played::here() else { return Ok(false) };
    install(py, "install", &device)?;
    Ok(true)
}

/// Compiles for a device that is there without a connection to it.
pub(super) fn compile_only(py: Python<'_>, device: &Played) -> PyResult<()> {
    install(py, "compile_only", device)
}

fn install(py: Python<'_>, how: &str, device: &Played) -> PyResult<()> {
    let played = helper(py, "_warpsmith_played", include_str!("played.py"))?;
    let Played { name, capability, multiprocessors, shared } = device;
    played.getattr(how)?.call1((name, capability, multiprocessors, shared)).map(drop)
}

/// Compiles all that a tuner may choose.
pub(super) fn choosing<T>(compile: impl FnOnce() -> T) -> T {
    CHOICE.fetch_add(1, Ordering::Relaxed);
    let out = compile();
    CHOICE.fetch_add(1, Ordering::Relaxed);
    out
}

/// From now on what is compiled is kept, or is not.
pub(super) fn want(drafts: bool) {
    WANTED.store(drafts, Ordering::Relaxed);
}

/// The launches that were compiled since this was asked last.
pub(super) fn take() -> Drafts {
    std::mem::take(&mut drafts())
}

fn drafts() -> MutexGuard<'static, Drafts> {
    DRAFTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps which memory is that of the arguments and the results of a call, where that is wanted.
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

/// What tells what was compiled since this was asked last from everything else that computes otherwise or takes another time;
/// `None` where nothing was, or it cannot be told.
pub(super) fn take_code() -> Option<String> {
    match std::mem::replace(&mut *CODE.lock().unwrap_or_else(PoisonError::into_inner), Code::Nothing) {
        Code::Some(hasher) => Some(hasher.finalize().to_hex().to_string()),
        Code::Nothing | Code::Unknown => None,
    }
}

/// Keeps what was compiled for a launch.
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

/// A launch in so far as the device sees it: where in the text something stands is none of that.
fn digest(drafted: &Drafted, machine_code: &[u8]) -> Option<[u8; 32]> {
    let file = object::File::parse(machine_code).ok()?;
    let mut hasher = blake3::Hasher::new();
    for section in file.sections() {
        let name = section.name().ok()?;
        if [".text", ".nv.info", ".nv.constant", ".nv.shared"].iter().any(|kind| name.starts_with(kind)) {
            hasher.update(name.as_bytes()).update(section.data().ok()?);
        }
    }
    let Drafted { grid, parameters, shared, warps, choice, .. } = drafted;
    hasher.update(format!("{grid:?} {parameters:?} {shared} {warps} {}", choice.is_some()).as_bytes());
    Some(*hasher.finalize().as_bytes())
}

/// What was compiled for a launch, and its machine code.
fn look(
    function: &Bound<'_, PyAny>,
    (args, kwargs): (&Bound<'_, PyTuple>, &Bound<'_, PyDict>),
    compiled: &Bound<'_, PyAny>,
) -> PyResult<(Drafted, Vec<u8>)> {
    let helper = drafted(function.py())?;
    let LaunchRecord { grid, keywords, .. } = launch_record(function, kwargs, args)?;
    let given: Vec<Option<(i64, Option<f64>, u64)>> =
        helper.getattr("parameters")?.call1((compiled, function, args, kwargs))?.extract()?;
    type Found = (String, String, Vec<u8>, u32, u32, u32);
    let (kernel, text, code, shared, warps, stages): Found =
        helper.getattr("resources")?.call1((compiled,))?.extract()?;
    let (registers, stack) = registers(&code).unwrap_or_default();
    let parameter = |found: &Option<(i64, Option<f64>, u64)>| match *found {
        Some((offset, Some(bytes), _)) => Parameter::Tensor { offset, bytes },
        Some((value, None, _)) => Parameter::Int(value),
        None => Parameter::Other,
    };
    let parameters = given.iter().map(parameter).collect();
    let memories = given.iter().map(|found| found.map_or(0, |(.., memory)| memory)).collect();
    let choice = Some(CHOICE.load(Ordering::Relaxed)).filter(|choice| choice % 2 == 1);
    let drafted =
        Drafted { kernel, grid, parameters, memories, text, registers, stack, shared, warps, stages, choice, keywords };
    Ok((drafted, code))
}

/// Registers and bytes of stack of a thread of the kernel in a `cubin`, of which there is one.
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
