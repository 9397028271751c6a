//! Judging on another machine. `evaluator.command`, or the client of a pool, starts a `warpsmith worker` there, and
//! both sides exchange these frames over its standard streams. A broken link is connected again once or twice; open
//! requests are then sent again under their numbers, so that no result is lost or counted twice.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use protocol::{PROTOCOL, RuntimeVersions, Workload, read_frame, write_frame};
use runtime::python::ForkerError;

use super::case::Task;
use super::effort::Effort;
use super::evaluator::Evaluator;
use super::locks::lock;
use super::remote_target::RemoteTarget;
use super::undecided::{Undecided, UndecidedCause};
use super::verdict::{Measured, Verdict};

/// The silence after which a message names what is being waited for.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the other side may take to end by itself with its processes, and once more after it was asked to terminate.
const END_LIMIT: Duration = Duration::from_secs(5);
/// The most bytes, in total, of the Python files beside the original that are sent along.
const MOST_FILES: u64 = 8 << 20;

/// A request to the other side.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Ask {
    /// Judge a candidate.
    Judge {
        /// The number of the request.
        id: u64,
        /// The task with its files.
        parcel: Box<Parcel>,
    },
    /// With `true`, cancels all judgements; with `false`, allows new ones.
    Abandon(bool),
    /// Cancels the judgement of this number; its verdict is not needed either.
    Drop(u64),
}

/// A reply of the other side.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Say {
    /// The greeting.
    Ready {
        protocol: u32,
        #[serde(flatten)]
        hello: Hello,
    },
    /// The other side cannot judge, for this reason.
    Unfit { reason: String },
    /// The verdict on the candidate of this number.
    Verdict { id: u64, verdict: Box<Verdict> },
}

/// The greeting: what the other side offers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) environment: RuntimeVersions,
    /// The number of processor cores.
    #[serde(default)]
    pub(super) cores: usize,
    /// The number of GPUs.
    #[serde(default)]
    pub(super) devices: usize,
    /// The identity of the judge.
    #[serde(default)]
    pub(super) judge: String,
    /// The GPU model, as a pool names it.
    #[serde(default)]
    pub(super) model: String,
}

/// A task with the contents of its files.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Parcel {
    /// The original's path relative to its folder.
    name: PathBuf,
    /// The texts of the folder's Python files, including the original, by relative path.
    files: BTreeMap<PathBuf, String>,
    candidate: String,
    workloads: Vec<Workload>,
    effort: Effort,
    /// Measurements that the client of a pool adds, which receives those of all its hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    known: Vec<Measured>,
}

impl Parcel {
    fn of(task: &Task) -> io::Result<Self> {
        let name = task.original.strip_prefix(&task.folder).unwrap_or(Path::new("warpsmith_original.py")).to_owned();
        let mut files = BTreeMap::new();
        let mut size = 0;
        let walk = ignore::WalkBuilder::new(&task.folder).build().flatten();
        for path in walk.map(ignore::DirEntry::into_path).filter(|path| path.extension().is_some_and(|it| it == "py")) {
            size += std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            if size > MOST_FILES {
                let what =
                    format!("the Python files of {} take more than {} MiB", task.folder.display(), MOST_FILES >> 20);
                return Err(io::Error::other(what));
            }
            if let (Ok(name), Ok(text)) = (path.strip_prefix(&task.folder), std::fs::read_to_string(&path)) {
                files.insert(name.to_owned(), text);
            }
        }
        files.insert(name.clone(), std::fs::read_to_string(&task.original)?);
        let candidate = std::fs::read_to_string(&task.candidate)?;
        Ok(Self { name, files, candidate, workloads: task.workloads.clone(), effort: task.effort, known: Vec::new() })
    }

    /// Writes the files into a folder below `root`; equal files give the same folder.
    fn unpack(self, root: &Path, id: u64) -> io::Result<Task> {
        let hash = blake3::hash(&serde_json::to_vec(&self.files)?).to_hex();
        let folder = root.join(&hash[..16]);
        if !folder.exists() {
            let partial = root.join(format!("partial-{id}"));
            for (name, text) in &self.files {
                let is_inside = name.components().all(|part| matches!(part, std::path::Component::Normal(_)));
                if is_inside {
                    let path = partial.join(name);
                    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                    std::fs::write(path, text)?;
                }
            }
            // Another candidate may have created the same folder meanwhile.
            if std::fs::rename(&partial, &folder).is_err() && !folder.exists() {
                return Err(io::Error::other("the files cannot be written"));
            }
        }
        let candidate = root.join(format!("candidate_{id}.py"));
        std::fs::write(&candidate, self.candidate)?;
        let original = folder.join(&self.name);
        let mut workloads = self.workloads;
        workloads.iter_mut().for_each(|workload| workload.file.clone_from(&original));
        let Self { effort, known, .. } = self;
        Ok(Task { original, candidate, folder, workloads, effort, known, unwanted: Arc::default() })
    }
}

/// Reports to the other end of the standard streams that this machine cannot judge.
///
/// # Errors
/// Returns an error when writing to the stream fails.
pub fn refuse(reason: &str, mut output: impl Write) -> io::Result<()> {
    write_frame(&mut output, &Say::Unfit { reason: reason.to_owned() })
}

/// Serves the judge at the other end of the standard streams until they close: the command `warpsmith worker`.
///
/// # Errors
/// Returns an error when reading from or writing to the streams fails.
pub fn serve(evaluator: &Evaluator, input: impl Read, output: impl Write + Send) -> io::Result<()> {
    let (mut input, output) = (BufReader::new(input), Mutex::new(BufWriter::new(output)));
    let say = |message: &Say| write_frame(&mut *lock(&output), message);
    say(&Say::Ready { protocol: PROTOCOL, hello: evaluator.hello() })?;
    let folder = tempfile::tempdir()?;
    let (folder, say) = (folder.path(), &say);
    let is_over = &AtomicBool::new(false);
    let open = &Mutex::new(HashMap::<u64, Arc<AtomicBool>>::new());
    std::thread::scope(|scope| {
        let ended = loop {
            match read_frame(&mut input) {
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
                Ok(Some(Ask::Abandon(unwanted))) => evaluator.abandon(unwanted),
                Ok(Some(Ask::Drop(id))) => {
                    if let Some(unwanted) = lock(open).get(&id) {
                        unwanted.store(true, Ordering::Relaxed);
                    }
                }
                Ok(Some(Ask::Judge { id, parcel })) => {
                    let unwanted = Arc::<AtomicBool>::default();
                    lock(open).insert(id, Arc::clone(&unwanted));
                    scope.spawn(move || {
                        let task = parcel.unpack(folder, id).map(|task| Task { unwanted, ..task });
                        let verdict = match task {
                            Ok(task) if task.effort.prefetch_only => {
                                let is_wanted = || !task.is_unwanted() && !is_over.load(Ordering::Relaxed);
                                evaluator.prefetch(&task, &is_wanted);
                                Verdict::undecided(UndecidedCause::Other, "nothing was to be judged")
                            }
                            Ok(task) => evaluator.judge(&task),
                            Err(error) => {
                                Verdict::undecided(UndecidedCause::Other, format!("the files do not arrive: {error}"))
                            }
                        };
                        lock(open).remove(&id);
                        // The reader notices the end of the stream.
                        let _ = say(&Say::Verdict { id, verdict: Box::new(verdict) });
                    });
                }
            }
        };
        // No one receives an error here.
        is_over.store(true, Ordering::Relaxed);
        evaluator.abandon(true);
        ended
    })
}

/// The local end of a link to a worker on another machine.
pub(super) struct Remote {
    way: RemoteTarget,
    link: Mutex<Link>,
    waiting: Waiting,
    next: AtomicU64,
    hello: Mutex<Hello>,
    unwanted: AtomicBool,
}

struct Link {
    process: Child,
    /// `None` once the link is to end.
    stdin: Option<BufWriter<ChildStdin>>,
    /// Each connection has its own flag: the reader of the last connection may end long after it.
    is_broken: Arc<AtomicBool>,
    /// How often the link has been connected again.
    mends: u32,
}

impl Remote {
    pub(super) fn start(way: RemoteTarget, waiting: &dyn Fn() -> bool) -> Result<Self, ForkerError> {
        let all = Arc::default();
        let (link, hello) = connect(&way, 0, None, &all, waiting)?;
        let (link, hello) = (Mutex::new(link), Mutex::new(hello));
        let (next, unwanted) = Default::default();
        Ok(Self { way, link, waiting: all, next, hello, unwanted })
    }

    pub(super) fn hello(&self) -> Hello {
        lock(&self.hello).clone()
    }

    pub(super) fn judge(&self, task: &Task) -> Verdict {
        self.ask(task, &|| !task.is_unwanted())
    }

    /// Makes the other side compute ahead what candidates will need from the original, and waits while `wanted` returns
    /// true.
    pub(super) fn prefetch(&self, task: &Task, wanted: &dyn Fn() -> bool) {
        let effort = Effort { prefetch_only: true, ..task.effort };
        self.ask(&Task { effort, ..task.clone() }, wanted);
    }

    fn ask(&self, task: &Task, wanted: &dyn Fn() -> bool) -> Verdict {
        if let Some(why) = self.way.objection(&task.workloads, &lock(&self.hello).environment) {
            return Undecided::process(why).into();
        }
        let parcel = match Parcel::of(task) {
            Ok(parcel) => parcel,
            Err(error) => {
                return Verdict::undecided(UndecidedCause::Other, format!("the files cannot be read: {error}"));
            }
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, verdict) = channel();
        lock(&self.waiting).insert(id, (parcel.clone(), sender));
        self.send(&Ask::Judge { id, parcel: Box::new(parcel) });
        loop {
            if let Ok(verdict) = verdict.recv_timeout(Duration::from_millis(100)) {
                return verdict;
            }
            let is_dropped = !wanted();
            if is_dropped || self.unwanted.load(Ordering::Relaxed) {
                lock(&self.waiting).remove(&id);
                if is_dropped {
                    self.send(&Ask::Drop(id));
                }
                return Undecided::cancelled().into();
            }
            if let Err(why) = self.mend() {
                lock(&self.waiting).remove(&id);
                return Undecided::process(format!("the connection to the evaluator was lost: {why}")).into();
            }
        }
    }

    pub(super) fn abandon(&self, unwanted: bool) {
        self.unwanted.store(unwanted, Ordering::Relaxed);
        self.send(&Ask::Abandon(unwanted));
    }

    fn send(&self, ask: &Ask) {
        // The link's reader notices a broken link as well.
        let mut link = lock(&self.link);
        if link.tell(ask).is_err() {
            link.is_broken.store(true, Ordering::Relaxed);
        }
    }

    /// Connects a broken link again, within the limit, and sends the open requests again.
    fn mend(&self) -> Result<(), String> {
        let mut link = lock(&self.link);
        if !link.is_broken.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mends = link.mends + 1;
        if mends > self.way.max_reconnects() {
            return Err(if mends == 2 { "for the second time" } else { "for the third time" }.to_owned());
        }
        link.end(Duration::ZERO);
        let going = || !self.unwanted.load(Ordering::Relaxed);
        let earlier = self.hello();
        let (fresh, hello) = connect(&self.way, mends, Some(&earlier.model), &self.waiting, &going)
            .map_err(|error| error.to_string())?;
        *link = fresh;
        if hello.environment != earlier.environment {
            let told = |it: &RuntimeVersions| format!("{}, Triton {}, torch {}", it.device, it.triton, it.torch);
            let (now, before) = (told(&hello.environment), told(&earlier.environment));
            return Err(format!("it leads to {now} now, and led to {before}: what they measure is not compared"));
        }
        *lock(&self.hello) = hello;
        let again: Vec<Ask> = lock(&self.waiting)
            .iter()
            .map(|(&id, (parcel, _))| Ask::Judge { id, parcel: Box::new(parcel.clone()) })
            .collect();
        again.iter().try_for_each(|ask| link.tell(ask)).map_err(|error| error.to_string())
    }
}

impl Link {
    fn tell(&mut self, ask: &Ask) -> io::Result<()> {
        self.stdin.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |stdin| write_frame(stdin, ask))
    }

    /// Ends the other side: by closing its input, so that it can clean up, and by a signal after the limit.
    fn end(&mut self, limit: Duration) {
        self.stdin = None;
        if self.has_ended(limit) {
            return;
        }
        ask_to_end(&self.process);
        if !self.has_ended(END_LIMIT) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    fn has_ended(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

#[expect(unsafe_code, reason = "the standard library kills only")]
fn ask_to_end(process: &Child) {
    if let Ok(id) = i32::try_from(process.id()) {
        // SAFETY: no pointers; the process has not been waited for, so its number is still its own.
        unsafe { libc::kill(id, libc::SIGTERM) };
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        lock(&self.link).end(END_LIMIT);
    }
}

type Waiting = Arc<Mutex<HashMap<u64, (Parcel, Sender<Verdict>)>>>;

/// Connects a link. A pool's client that ends before it is ready has lost its connection, so another one is started.
fn connect(
    way: &RemoteTarget,
    mends: u32,
    earlier: Option<&str>,
    all: &Waiting,
    waiting: &dyn Fn() -> bool,
) -> Result<(Link, Hello), ForkerError> {
    let failed = |why: String| ForkerError::Unfit(format!("{}: {why}", way.name().0));
    let (since, mut earlier, mut more) = (Instant::now(), earlier, way.max_starts());
    loop {
        let process = way.spawn(earlier).map_err(|error| failed(error.to_string()))?;
        more -= 1;
        match greeted(process, mends, all, &|first| greeting(first, way, since, waiting)) {
            Err(Unready::Ended) if more > 0 && waiting() && since.elapsed() < way.start() => {
                tracing::warn!("{} is started again: its process ended before it was ready", way.name().0);
                // From now on, waiting is reported in the same way as after a broken link.
                earlier = earlier.or(Some(""));
            }
            Err(unready) => return Err(failed(unready.to_string())),
            Ok(linked) => return Ok(linked),
        }
    }
}

/// Why the other side is not ready.
#[derive(Debug, thiserror::Error)]
enum Unready {
    #[error("it ended before it was ready")]
    Ended,
    #[error("{0}")]
    Because(String),
}

type First = Receiver<io::Result<Say>>;

/// Reads from a started process until its greeting arrives.
fn greeted(
    mut process: Child,
    mends: u32,
    all: &Waiting,
    greeting: &dyn Fn(&First) -> Result<Hello, Unready>,
) -> Result<(Link, Hello), Unready> {
    let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
        return Err(Unready::Because("it has no standard streams".to_owned()));
    };
    let (sender, first) = channel();
    let is_broken = Arc::<AtomicBool>::default();
    let (all, breaks) = (Arc::clone(all), Arc::clone(&is_broken));
    std::thread::spawn(move || listen(stdout, &sender, &all, &breaks));
    let mut link = Link { process, stdin: Some(BufWriter::new(stdin)), is_broken, mends };
    match greeting(&first) {
        Ok(hello) => Ok((link, hello)),
        Err(why) => {
            link.end(Duration::ZERO);
            Err(why)
        }
    }
}

/// Waits for the greeting of the other side.
fn greeting(first: &First, way: &RemoteTarget, since: Instant, waiting: &dyn Fn() -> bool) -> Result<Hello, Unready> {
    let because = |why| Err(Unready::Because(why));
    let (limit, mut is_told) = (way.start(), since.elapsed() > SILENCE);
    while waiting() {
        let passed = since.elapsed();
        if passed > limit {
            let seconds = limit.as_secs_f64();
            return because(format!(
                "it was not ready within {seconds} s; a queue may take longer: set `evaluator.start`"
            ));
        }
        if passed > SILENCE && !is_told {
            is_told = true;
            let most = limit.as_secs_f64();
            let (name, setting) = way.name();
            tracing::warn!("waiting for {name} (`{setting}`) to be ready, for at most {most} s (`evaluator.start`)");
        }
        match first.recv_timeout(Duration::from_millis(100)) {
            Ok(Ok(Say::Ready { protocol: PROTOCOL, hello })) => return Ok(hello),
            Ok(Ok(Say::Ready { protocol, .. })) => {
                return because(format!(
                    "it speaks protocol {protocol}, not {PROTOCOL}: install the same warpsmith there"
                ));
            }
            Ok(Ok(Say::Unfit { reason })) => return because(reason),
            Ok(Err(_)) => {
                return because(
                    "what it writes is not what `warpsmith worker` writes; does a start-up file print?".to_owned(),
                );
            }
            Ok(Ok(Say::Verdict { .. })) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Unready::Ended),
        }
    }
    because("it is not ready".to_owned())
}

fn listen(stdout: impl Read, first: &Sender<io::Result<Say>>, all: &Waiting, is_broken: &AtomicBool) {
    let mut stdout = BufReader::new(stdout);
    loop {
        match read_frame::<Say>(&mut stdout) {
            // A verdict that is no longer waited for was delivered before.
            Ok(Some(Say::Verdict { id, verdict })) => {
                if let Some((_, waiting)) = lock(all).remove(&id) {
                    let _ = waiting.send(*verdict);
                }
            }
            Ok(Some(other)) => drop(first.send(Ok(other))),
            Ok(None) => break,
            Err(error) => {
                // The receiver exists only while a thread waits for the greeting.
                let _ = first.send(Err(error));
                break;
            }
        }
    }
    is_broken.store(true, Ordering::Relaxed);
}
