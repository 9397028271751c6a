//! Tests of recording and optimizing on a simulated device: everything but the times is real. Needs the interpreter
//! that `cargo xtask test` prepares (`WARPSMITH_TEST_PYTHON`).

#![expect(clippy::unwrap_used, reason = "a test that panics fails, as it should")]

mod models;
mod orphans;
mod predicted;
mod process_reuse;
mod replayed;
mod runs;
mod sanitizer;
mod shapes;
mod stragglers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Tests limit their searches by the number of candidates, because the time that a search needs depends on the machine.
const BUDGET: &str = "300s";

/// A kernel over rows, whose entry allocates its result.
const SCALE: &str = r#"
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + offsets, x * 2.0, mask=offsets < n)

def scale(x):
    out = torch.empty_like(x)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, 16),)](x, out, n, BLOCK=16)
    return out

if __name__ == "__main__":
    scale(torch.ones(300))
    scale(torch.ones(300))
"#;

struct Project(tempfile::TempDir);

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            std::fs::write(project.path(name), text).unwrap();
        }
        // A `.git` folder makes this folder the workspace, wherever temporary folders are.
        std::fs::create_dir(project.path(".git")).unwrap();
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let python = test_python();
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpsmith"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("WARPSMITH_FAKE_DEVICE", "toy")
            .env("XDG_STATE_HOME", self.path(".state"))
            .env("VIRTUAL_ENV", python.parent().and_then(Path::parent).unwrap());
        command
    }

    /// An empty folder for temporary files.
    fn temporary(&self) -> PathBuf {
        let folder = self.path(".tmp");
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn workloads(&self) -> Vec<Value> {
        let shown = self.run(&["workloads", "show", "--json"]).stdout;
        let shown: Vec<Value> = serde_json::from_slice(&shown).unwrap();
        shown.into_iter().map(|row| row["workload"].clone()).collect()
    }
}

fn test_python() -> PathBuf {
    std::env::var_os("WARPSMITH_TEST_PYTHON").expect("run the tests by `cargo xtask test`").into()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_recording_keeps_arguments_counts_and_launches() {
    let project = Project::new(&[("scale.py", SCALE)]);
    let python = test_python();
    let ran = project.run(&["record", "--", python.to_str().unwrap(), "scale.py"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "recorded scale in scale.py: 2 calls, launches scale_kernel\n");
    let workloads = project.workloads();
    let [workload] = workloads.as_slice() else { panic!("{workloads:?}") };
    assert_eq!(workload["entry"], "scale");
    assert_eq!(workload["args"][0]["tensor"]["shape"], serde_json::json!([300]));
    assert_eq!(workload["mutated"], serde_json::json!([]));
    assert_eq!(workload["launches"][0]["kernel"], "scale_kernel");
    assert_eq!(workload["launches"][0]["grid"], serde_json::json!([19]));
    let pointer = serde_json::json!({ "pointer": "float32" });
    let arguments =
        serde_json::json!([["x_ptr", pointer], ["out_ptr", pointer], ["n", { "int": 300 }], ["BLOCK", { "int": 16 }]]);
    assert_eq!(workload["launches"][0]["arguments"], arguments);
    assert_eq!(std::fs::read_to_string(project.path(".warpsmith/.gitignore")).unwrap(), "*\n");
}

#[test]
fn imported_functions_methods_and_changed_arguments_are_recorded() {
    let main = "import torch\nfrom lib import Op\nop = Op()\nx = torch.ones(64)\nindex = torch.tensor([3, 1])\nop.run(x, index, [x, None], flag=True)\nassert x[0] == 2\n";
    let lib = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef double(x_ptr, N: tl.constexpr):\n    o = tl.arange(0, N)\n    tl.store(x_ptr + o, tl.load(x_ptr + o) * 2)\n\nclass Op:\n    def run(self, x, index, rest, flag):\n        double[(1,)](x, N=64)\n";
    let project = Project::new(&[("main.py", main), ("lib.py", lib)]);
    let ran = project.run(&["record", "--", test_python().to_str().unwrap(), "main.py"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let workload = &project.workloads()[0];
    assert_eq!(workload["entry"], "Op.run");
    assert_eq!(workload["args"][0]["object"]["class"]["module"], "lib");
    assert_eq!(workload["args"][2]["tensor"]["data"]["integers"], serde_json::json!([3, 1]));
    // The list also contains the tensor that is passed alone, under the same id.
    assert_eq!(workload["args"][3]["list"][0]["tensor"]["id"], 0);
    assert_eq!(workload["kwargs"][0], serde_json::json!(["flag", {"bool": true}]));
    assert_eq!(workload["mutated"], serde_json::json!([0]));
}

/// A function that launches and calls another that does: each is recorded, the outer one with all launches in order.
#[test]
fn an_entry_inside_an_entry_is_recorded_as_both() {
    let outer = "
def outer(x):
    scale_kernel[(2,)](x, x, 8, BLOCK=4)
    y = scale(x)
    scale_kernel[(1,)](y, y, 4, BLOCK=4)
    plain(x)

def plain(x):
    return {'f': abs}['f'](x)

if __name__ == '__main__':
    outer(torch.ones(300))
";
    let functions = SCALE.split("if __name__").next().unwrap();
    let project = Project::new(&[("scale.py", &format!("{functions}{outer}"))]);
    let ran = project.run(&["record", "--", test_python().to_str().unwrap(), "scale.py"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    let mut grids: Vec<(String, Value)> = project
        .workloads()
        .iter()
        .map(|workload| {
            let grids = workload["launches"].as_array().unwrap().iter().map(|launch| launch["grid"][0].clone());
            (workload["entry"].as_str().unwrap().to_owned(), grids.collect())
        })
        .collect();
    grids.sort_by(|a, b| a.0.cmp(&b.0));
    // `plain` calls a function of a table and launches nothing, so it is not kept.
    assert_eq!(
        grids,
        [("outer".to_owned(), serde_json::json!([2, 19, 1])), ("scale".to_owned(), serde_json::json!([19]))]
    );
}

#[test]
fn a_command_that_fails_keeps_what_was_recorded() {
    let project = Project::new(&[("scale.py", &format!("{SCALE}    raise SystemExit(7)\n"))]);
    let ran = project.run(&["record", "--", test_python().to_str().unwrap(), "scale.py"]);
    assert_eq!(ran.status.code(), Some(7));
    assert_eq!(project.workloads().len(), 1);
    let refused = project.run(&["record", "--", "make", "all"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("give a Python command"), "{}", text(&refused.stderr));
}

#[test]
fn optimizing_records_searches_verifies_and_applies() {
    let fixed_grid = SCALE.replace("triton.cdiv(n, 16)", "triton.cdiv(n, BLOCK)").replace("BLOCK=16", "BLOCK=BLOCK");
    let text_before = fixed_grid.replace("def scale(x):\n", "def scale(x):\n    BLOCK = 16\n");
    let numbers_only = ("warpsmith.toml", "[optimize]\nrewrites = false\ncandidates = 12\n");
    let project = Project::new(&[("scale.py", &text_before), numbers_only]);
    let ran = project.run(&["optimize", "scale.py", "--budget", BUDGET, "--apply"]);
    assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let shown = text(&ran.stdout);
    assert!(shown.contains("× faster: ") && shown.contains(", 95 % ") && shown.contains("simulated"), "{shown}");
    let after = std::fs::read_to_string(project.path("scale.py")).unwrap();
    assert_ne!(after, text_before);
    let block = after.lines().find_map(|line| line.trim().strip_prefix("BLOCK = ")).unwrap();
    assert!(block.parse::<i64>().unwrap() > 16, "fewer programs are faster on the simulated device: {after}");
    let rerun =
        Command::new(test_python()).arg(project.path("scale.py")).env("TRITON_INTERPRET", "1").status().unwrap();
    assert!(rerun.success());

    // The applied change can be measured again, against the file before it.
    let again = text(&project.run(&["optimize", "--measure", "last"]).stdout);
    assert!(again.contains("× faster: ") && again.contains(", than before `scale_kernel-1`."), "{again}");
    std::fs::write(project.path("scale.py"), &text_before).unwrap();
    let same = project.run(&["optimize", "--measure", "last"]);
    assert!(text(&same.stderr).contains("there is nothing to compare"), "{}", text(&same.stderr));
}

/// Programs of one short row each: the simulated device is faster with fewer programs.
const ROWS: &str = r#"
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride_x, stride_out, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=mask, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride_out + cols, x / tl.sum(x, axis=0), mask=mask)


def softmax(x):
    n_rows, n_cols = x.shape
    out = torch.empty_like(x)
    BLOCK = triton.next_power_of_2(n_cols)
    softmax_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, BLOCK=BLOCK)
    return out


if __name__ == "__main__":
    x = torch.randn(37, 20)
    assert (softmax(x) - torch.softmax(x, dim=1)).abs().max() < 1e-5
"#;

#[test]
fn a_kernel_is_rewritten_to_take_several_rows() {
    let project = Project::new(&[("rows.py", ROWS), ("warpsmith.toml", "[optimize]\ncandidates = 18\n")]);
    let ran = project.run(&["optimize", "rows.py", "--budget", BUDGET, "--apply"]);
    let shown = text(&ran.stdout);
    assert!(ran.status.success(), "{shown}{}", text(&ran.stderr));
    assert!(shown.contains("several rows for each program, ROWS 1 → "), "{shown}");
    let after = std::fs::read_to_string(project.path("rows.py")).unwrap();
    assert!(after.contains("keep_dims=True") && after.contains("meta[\"ROWS\"]"), "{after}");
    let rerun = Command::new(test_python()).arg(project.path("rows.py")).env("TRITON_INTERPRET", "1").status().unwrap();
    assert!(rerun.success());
}

/// The grid has a fixed number of programs for tiles of 16. With a smaller tile elements stay unwritten, and a larger
/// tile computes the same in fewer programs only if the grid changes, too: every offer must have passed both other
/// values and other sizes.
#[test]
fn a_change_that_is_wrong_is_never_offered() {
    let project = Project::new(&[("scale.py", SCALE), ("warpsmith.toml", "[optimize]\ncandidates = 10\n")]);
    let ran = project.run(&["optimize", "scale.py", "--budget", BUDGET, "--json"]);
    let outcome: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{}", text(&ran.stderr)));
    let change = outcome["offer"]["change"].as_str().unwrap_or_default();
    if let Some((_, block)) = change.split_once("BLOCK 16 → ") {
        let block: String = block.chars().take_while(char::is_ascii_digit).collect();
        assert!(block.parse::<u64>().unwrap() > 16, "{change}");
    }
    assert!(outcome["evaluated"].as_u64().unwrap() > 0);
}

/// A kernel that only a comment launches, on a machine without torch.
#[test]
fn a_kernel_launched_only_by_its_comment_is_optimized_without_torch() {
    let kernel = "
import triton
import triton.language as tl

# warpsmith: workload entry=scale_kernel[cdiv(n,BLOCK)] x=f32[300] out=f32[300] n=300 BLOCK=16

@triton.jit
def scale_kernel(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 2.0, mask=at < n)
";
    let numbers_only = ("warpsmith.toml", "[optimize]\nrewrites = false\ncandidates = 10\n");
    let project = Project::new(&[("scale.py", kernel), numbers_only]);
    std::fs::create_dir(project.path("first")).unwrap();
    std::fs::write(project.path("first/torch.py"), "raise ImportError('none here')\n").unwrap();
    let mut command = project.command(&["optimize", "scale.py", "--budget", BUDGET, "--apply"]);
    let ran = command.env("PYTHONPATH", project.path("first")).output().unwrap();
    let shown = text(&ran.stdout);
    assert!(ran.status.success(), "{shown}{}", text(&ran.stderr));
    assert!(shown.contains("BLOCK 16 → ") && shown.contains("The comment is changed"), "{shown}");
    assert!(shown.contains("no torch"), "{shown}");
    let after = std::fs::read_to_string(project.path("scale.py")).unwrap();
    let (said, rest) = after.split_once(" BLOCK=").unwrap();
    let block: i64 = rest.split_whitespace().next().unwrap().parse().unwrap();
    assert!(block > 16 && kernel.starts_with(said), "fewer programs are faster on the simulated device: {after}");
    assert!(after.ends_with(kernel.split_once("BLOCK=16\n").unwrap().1), "{after}");
}

#[test]
fn optimize_reports_why_a_file_cannot_be_optimized() {
    let unread = "@triton.jit\ndef k(x): pass\n# warpsmith: workload entry=k[n/2] x=f32[8]\n";
    let unread = format!("import triton\n{unread}");
    let tuned = unread.replace("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit").replace("n/2", "1");
    let project =
        Project::new(&[("scale.py", SCALE), ("empty.py", "x = 1\n"), ("unread.py", &unread), ("tuned.py", &tuned)]);
    for (args, reason) in [
        (&["optimize", "empty.py"][..], "launches no kernel"),
        (&["optimize", "unread.py"][..], "unread.py:4: a grid is made of"),
        (&["optimize", "tuned.py"][..], "leaves nothing to turn"),
        (&["optimize", "scale.py", "--kernel", "other"][..], "no kernel `other`"),
        (&["optimize", "missing.py"][..], "cannot be read"),
    ] {
        let ran = project.run(args);
        assert_eq!(ran.status.code(), Some(2));
        assert!(text(&ran.stderr).contains(reason), "{}", text(&ran.stderr));
    }
    // Without torch nothing can be recorded.
    std::fs::create_dir(project.path("first")).unwrap();
    std::fs::write(project.path("first/torch.py"), "raise ImportError('none here')\n").unwrap();
    let ran = project.command(&["optimize", "scale.py"]).env("PYTHONPATH", project.path("first")).output().unwrap();
    let told = text(&ran.stderr);
    assert!(told.contains("recording takes torch (ImportError: none here); a kernel can be described"), "{told}");
    assert!(!told.contains("Traceback"), "{told}");
    let broken =
        Project::new(&[("scale.py", &SCALE.replace("scale(torch.ones(300))", "raise ValueError('broken here')"))]);
    let ran = broken.run(&["optimize", "scale.py"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(text(&ran.stderr).contains("broken here"), "{}", text(&ran.stderr));
}

/// After Ctrl-C the file is unchanged, and soon no process and no temporary file is left. The search itself does not
/// wait for that: a driver takes seconds to end many processes that use a device.
#[test]
#[cfg(unix)]
fn stopping_leaves_the_file_alone_and_no_process_behind() {
    let project = Project::new(&[("scale.py", SCALE)]);
    let mark = format!("WARPSMITH_TEST_MARK={}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let folder = project.temporary();
    let mut command = project.command(&["optimize", "scale.py", "--budget", "120s"]);
    let mut running = command.env(name, value).env("TMPDIR", &folder).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    // The forker and at least one candidate are running.
    while marked(&mark).len() < 3 {
        assert!(Instant::now() < deadline, "no candidate was ever started");
        std::thread::yield_now();
    }
    let stop = Command::new("kill").args(["-INT", &running.id().to_string()]).status().unwrap();
    assert!(stop.success());
    assert_eq!(running.wait().unwrap().code(), Some(2));
    soon("a process is left", || marked(&mark).is_empty());
    soon("a file is left", || is_empty(&folder));
    assert_eq!(std::fs::read_to_string(project.path("scale.py")).unwrap(), SCALE);
}

/// Waits until a condition holds.
fn soon(otherwise: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// The processes that have `mark` in their environment, with their programs.
fn marked(mark: &str) -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let found = numbers.filter_map(|number| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).ok()?;
        let is_marked = environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes());
        let name = std::fs::read_to_string(format!("/proc/{number}/comm")).ok()?;
        is_marked.then(|| (number, name.trim().to_owned()))
    });
    found.collect()
}
