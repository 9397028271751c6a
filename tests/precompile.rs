//! Tests of processes that compile for a device without connecting to it. There is no device here, so a process that
//! connects to one fails. Needs the interpreter that `cargo xtask test` prepares (`WARPSMITH_TEST_PYTHON`).

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use judge::{Devices, devices};
use protocol::runner::{AuthenticatedReply, ChildRole, Fence, Inputs, RunnerReply, RunnerRequest, Weights};
use protocol::{SimulatedGpu, read_frame, write_frame};
use runtime::python::{Child, ComputeDevice, Forker};
use workload::workloads_of_comments;

const PATIENCE: Duration = Duration::from_secs(120);

/// A kernel with a choice of numbers, in a function as users write them.
const FILE: &str = "
import torch, triton, triton.language as tl

# warpsmith: workload entry=scale x=f16[1000,512] rows=int32[64]

@triton.autotune([triton.Config({'BLOCK': 256}), triton.Config({'BLOCK': 512}, num_warps=8)], key=['n'])
@triton.jit
def scale_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) * 2, at < n)

@triton.jit
def add_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + 1, at < n)

def scale(x, rows):
    assert x.is_cuda and x.device.type == 'cuda'
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count
    assert programs == 132 and torch.cuda.get_device_capability() == (9, 0)
    out = torch.empty_like(x)
    scale_kernel[lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)](x, out, x.numel())
    with torch.cuda.device(x.device):
        add_kernel[(programs,)](out, out, out.numel(), BLOCK=1024)
    return out[: len(rows)]
";

fn hopper() -> SimulatedGpu {
    SimulatedGpu { name: "NVIDIA H200".to_owned(), capability: 90, multiprocessors: 132, shared: 232_448 }
}

struct Compiler {
    child: Child,
}

impl Compiler {
    fn start(forker: &Forker, folder: &Path, compiles: Option<SimulatedGpu>) -> Self {
        let [scratch, kernels] = ["scratch", "kernels"].map(|name| folder.join(name));
        let (processes, output) = (64, 1 << 30);
        let readable = vec![folder.to_owned()];
        let fence = Fence { scratch, kernels, readable, processes, output, token: 1, compiles, ..Fence::default() };
        std::fs::create_dir_all(&fence.scratch).unwrap();
        std::fs::create_dir_all(&fence.kernels).unwrap();
        let child = forker.spawn(ChildRole::Runner(Box::new(fence))).unwrap();
        child.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { child }
    }

    fn ask(&mut self, request: &RunnerRequest) -> RunnerReply {
        write_frame(&mut self.child.stream, request).unwrap();
        match read_frame::<AuthenticatedReply>(&mut self.child.stream) {
            Ok(Some(sealed)) => sealed.reply,
            other => panic!("{other:?}, {:?}", self.child.wait(PATIENCE)),
        }
    }

    /// Compiles the call that a file's comment describes; returns a hash of the code.
    fn compile(&mut self, file: PathBuf) -> String {
        let text = std::fs::read_to_string(&file).unwrap();
        let workload = workloads_of_comments(&file, &text).unwrap().remove(0);
        let (folder, weights) = (file.parent().unwrap().to_owned(), Weights::default());
        let load = RunnerRequest::Load { file, folder, workload: Box::new(workload), is_candidate: true, weights };
        match self.ask(&load) {
            RunnerReply::Loaded { takes_memory, seconds, .. } => assert!(!takes_memory && seconds < 60.0),
            other => panic!("{other:?}"),
        }
        let compile = RunnerRequest::Compile { inputs: Inputs::default(), chosen: Vec::new(), drafts: false };
        match self.ask(&compile) {
            RunnerReply::Compiled { failed: None, code: Some(code), .. } => code,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn compiling_without_a_device_gives_the_code_of_the_device() {
    let python = std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`");
    let matmul = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/matmul.py");
    let matmul = std::fs::read_to_string(matmul).unwrap();
    let call = "# warpsmith: workload entry=matmul a=bf16[512,512] b=bf16[512,512]\n";
    let files = [("scale.py", FILE.to_owned()), ("matmul.py", format!("{call}{matmul}"))];
    let folder = tempfile::tempdir().unwrap();
    let [there, played] = ["there", "played"].map(|name| folder.path().join(name));
    // With a simulated device, tensors are on the host.
    for (part, kind) in [(&there, "cuda"), (&played, "cpu")] {
        std::fs::create_dir_all(part).unwrap();
        for (name, text) in &files {
            std::fs::write(part.join(name), text.replace("'cuda'", &format!("'{kind}'"))).unwrap();
        }
    }
    let device = Forker::start(Path::new(&python), &ComputeDevice::Devices, &|| true).unwrap();
    let model = Forker::start(Path::new(&python), &ComputeDevice::Played(hopper()), &|| true).unwrap();
    for (name, _) in &files {
        let code = Compiler::start(&device, &there, Some(hopper())).compile(there.join(name));
        assert_eq!(code, Compiler::start(&model, &played, None).compile(played.join(name)), "{name}");
    }
    if matches!(devices(), Devices::Found(_)) {
        return;
    }
    // A process that runs kernels needs a device.
    let mut runs = Compiler::start(&device, &there, None);
    assert!(matches!(runs.child.wait(PATIENCE), Ok(Some(_))));
}
