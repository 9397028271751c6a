use std::fs;
use std::path::PathBuf;

use protocol::Workload;
use protocol::{ArgumentValue, LaunchRecord, RuntimeVersions, WorkloadSource};
use store::{Recording, RetentionLimits};

use super::*;

const LIMITS: RetentionLimits = RetentionLimits { size: 1 << 20, shapes: 16 };

struct Project {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Project {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = fs::canonicalize(folder.path()).unwrap().join("f.py");
        fs::write(&file, text).unwrap();
        Self { folder, file }
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn call(&self, entry: &str, count: u64, argument: ArgumentValue) -> Workload {
        let launch = LaunchRecord {
            kernel: "k".to_owned(),
            grid: vec![count.cast_signed()],
            arguments: vec![("n".to_owned(), ArgumentValue::Int(count.cast_signed()))],
            ..LaunchRecord::default()
        };
        Workload {
            file: self.file.clone(),
            entry: entry.to_owned(),
            args: vec![argument],
            launches: vec![launch],
            count,
            environment: RuntimeVersions { device: "H200".to_owned(), ..RuntimeVersions::default() },
            ..Workload::default()
        }
    }

    fn keep(&self, workloads: &[Workload]) {
        store(self.root()).unwrap().keep_recording(&Recording::now("python f.py"), workloads, LIMITS).unwrap();
        touch(self.root()).unwrap();
    }

    fn of(&self, of: CallSubject<'_>) -> Result<Vec<Workload>, UnusableCall> {
        CallQuery { workspace: self.root(), file: &self.file, text: None, of }.find()
    }

    fn for_file(&self, entry: Option<&str>) -> Result<Vec<(String, u64)>, UnusableCall> {
        let found = self.of(entry.map_or(CallSubject::File, CallSubject::Entry))?;
        Ok(found.into_iter().map(|workload| (workload.entry, workload.count)).collect())
    }
}

#[test]
fn recorded_calls_come_before_comments_and_those_before_the_files_own_inputs() {
    let bench = "class Model:\n    pass\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n";
    let project =
        Project::new(&format!("# warpsmith: workload entry=f n=1\n# warpsmith: workload entry=g count=5\n{bench}"));
    assert_eq!(project.for_file(None).unwrap(), [("g".to_owned(), 5), ("f".to_owned(), 1)]);
    assert_eq!(project.for_file(Some("f")).unwrap(), [("f".to_owned(), 1)]);
    for name in ["Model", "Model.forward"] {
        assert_eq!(project.for_file(Some(name)).unwrap(), [("Model.forward".to_owned(), 1)]);
    }
    assert_eq!(project.for_file(Some("h")), Err(UnusableCall::NotRecorded));
    project.keep(&[project.call("f", 2, ArgumentValue::Int(1)), project.call("f", 3, ArgumentValue::Int(2))]);
    assert_eq!(project.for_file(None).unwrap(), [("f".to_owned(), 3), ("f".to_owned(), 2)]);
    // A call that cannot be repeated does not hide one that can.
    let project = Project::new("# warpsmith: workload entry=f n=1\n");
    project.keep(&[project.call("f", 9, ArgumentValue::Opaque("io.File".to_owned()))]);
    assert_eq!(project.for_file(Some("f")).unwrap(), [("f".to_owned(), 1)]);
    fs::write(&project.file, "").unwrap();
    let why = "`f` cannot be run again: an argument of type `io.File`";
    assert_eq!(project.for_file(None), Err(UnusableCall::Obstacle(why.to_owned())));
}

/// A function that creates its own tensors, or that returns nothing to compare, comes last.
#[test]
fn functions_of_tensors_come_first() {
    let project = Project::new("");
    let tensor = || ArgumentValue::Tensor(protocol::TensorSpec::default());
    let check = Workload { traceless: true, ..project.call("check", 8, tensor()) };
    project.keep(&[project.call("main", 9, ArgumentValue::Int(1)), check, project.call("f", 2, tensor())]);
    let expected = [("f", 2), ("main", 9), ("check", 8)].map(|(name, count)| (name.to_owned(), count));
    assert_eq!(project.for_file(None).unwrap(), expected);
}

#[test]
fn a_comment_that_cannot_be_read_is_an_obstacle() {
    let project = Project::new("\n# warpsmith: workload entry=f x=g16[1]\n");
    let Err(UnusableCall::Obstacle(why)) = project.for_file(None) else { panic!("it was read") };
    assert!(why.contains("f.py:2: `x=g16[1]`: neither a value"), "{why}");
}

#[test]
fn a_call_is_found_by_the_kernel_that_it_launches() {
    let text = "# warpsmith: workload entry=f n=1\n# warpsmith: workload entry=h n=1 count=9\n
@triton.jit\ndef k(n): pass\n\ndef f(n):\n    k[(1,)](n)\n\ndef h(n): pass\n";
    let project = Project::new("");
    let of = |kernel: &str| project.of(CallSubject::Kernel(kernel));
    assert_eq!(of("k"), Err(UnusableCall::NotRecorded));
    // The comments of the editor's text apply, and only those of functions that eventually launch the kernel.
    let sought =
        CallQuery { workspace: project.root(), file: &project.file, text: Some(text), of: CallSubject::Kernel("k") };
    let entries = |found: Vec<Workload>| found.into_iter().map(|workload| workload.entry).collect::<Vec<_>>();
    assert_eq!(entries(sought.find().unwrap()), ["f"]);
    assert!(!project.root().join(".warpsmith").exists(), "looking writes nothing");
    project.keep(&[
        project.call("f", 2, ArgumentValue::Int(1)),
        project.call("g", 3, ArgumentValue::Opaque("io.File".to_owned())),
    ]);
    assert_eq!(of("k"), Ok(vec![project.call("f", 2, ArgumentValue::Int(1))]));
    assert_eq!(of("other"), Err(UnusableCall::NotRecorded));
    // The device of the recording does not matter, only the shapes do.
    let mut elsewhere = project.call("f", 7, ArgumentValue::Int(1));
    elsewhere.environment.device = "A100".to_owned();
    project.keep(std::slice::from_ref(&elsewhere));
    assert_eq!(of("k").unwrap()[0], elsewhere);
}

#[test]
fn the_recordings_version_changes_with_recordings_but_not_with_verdicts() {
    let project = Project::new("");
    let none = RecordingsVersion::around(&project.file);
    project.keep(&[project.call("f", 2, ArgumentValue::Int(1))]);
    let first = RecordingsVersion::around(&project.file);
    assert_ne!(none, first);
    assert_eq!(of_file(&none, &project.file).len(), 0);
    assert_eq!(of_file(&first, &project.file).len(), 1);
    store(project.root()).unwrap().keep_evaluation(b"key", "{}").unwrap();
    assert_eq!(RecordingsVersion::around(&project.file), first);
    project.keep(&[project.call("f", 7, ArgumentValue::Int(2)), project.call("g", 7, ArgumentValue::Int(3))]);
    let second = RecordingsVersion::around(&project.file);
    assert_ne!(first, second);
    let launches = of_file(&second, &project.file);
    assert_eq!(
        launches.iter().map(|launch| launch.grid.clone()).collect::<Vec<_>>(),
        [[7]],
        "each once, of the newest"
    );
}

/// A killed recorder has left its files; a running one holds a lock.
#[test]
fn what_a_killed_recorder_left_is_taken_over() {
    let project = Project::new("");
    let state = state_folder(project.root()).unwrap();
    let left = state.join("workloads/00000000000001");
    fs::create_dir_all(&left).unwrap();
    let mut call = project.call("f", 2, ArgumentValue::Int(1));
    call.source = WorkloadSource::Recorded;
    fs::write(left.join("f-0.json"), serde_json::to_vec(&call).unwrap()).unwrap();
    fs::write(left.join("g-1.partial"), "{").unwrap();
    let active = spool::Spool::new(&state).unwrap();
    fs::write(active.folder.join("f-0.json"), serde_json::to_vec(&project.call("g", 1, ArgumentValue::None)).unwrap())
        .unwrap();
    assert_eq!(project.for_file(None).unwrap(), [("f".to_owned(), 2)]);
    assert!(!left.exists() && active.folder.exists());
    let imported = active.import(&mut store(project.root()).unwrap(), &Recording::now(""), LIMITS).unwrap();
    assert_eq!(imported.len(), 1);
    assert_eq!(project.for_file(Some("g")).unwrap(), [("g".to_owned(), 1)]);
    assert!(!state.join("workloads").exists());
}

/// No code of the user runs without permission, or where there is nothing to record.
#[test]
fn a_file_is_run_only_with_consent_and_if_no_call_is_known() {
    let project = Project::new("# warpsmith: workload entry=f n=1\n");
    let asked = std::cell::RefCell::new(Vec::new());
    let device = std::cell::Cell::new(Ok("H200"));
    let get = |of: CallSubject<'_>, goes: bool| {
        let running = CallRecorder {
            python: Path::new("/nowhere/python"),
            limits: LIMITS,
            device: &|| device.get().map(str::to_owned).map_err(str::to_owned),
            may_run: &|question| {
                asked.borrow_mut().push(question.to_owned());
                false
            },
            go_on: &|| goes,
        };
        CallQuery { workspace: project.root(), file: &project.file, text: None, of }.find_or_record(&running)
    };
    assert_eq!(get(CallSubject::Entry("f"), true).unwrap().len(), 1);
    assert_eq!(asked.borrow().len(), 0);
    assert!(matches!(get(CallSubject::Entry("g"), true), Err(NoCallReason::Declined)));
    assert!(matches!(get(CallSubject::Kernel("k"), false), Err(NoCallReason::Cancelled)));
    device.set(Err("no driver"));
    let error = get(CallSubject::Entry("g"), true).unwrap_err().to_string();
    assert!(error.starts_with("no call of it is recorded, and there is no GPU here to record one on (no driver); "));
    let question = |name: &str| format!("No call of `{name}` is recorded yet. Run `python f.py` once to record one?");
    assert_eq!(*asked.borrow(), [question("g"), question("k")]);
}
