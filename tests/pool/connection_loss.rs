//! Tests of broken connections between a client and the cluster, and of a head that fails.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::judging::{Project, SCALE};
use crate::ray::{Cluster, judge_in};
use crate::{CANDIDATES, counts, expected, judged, judged_with, status};

#[test]
fn a_restart_of_the_pool_head_loses_no_candidate() {
    let project = Project::new(SCALE, CANDIDATES);
    let mut cluster = Cluster::start(&["toy", "toy"]);
    for address in [cluster.address.clone(), cluster.client_address.clone()] {
        judge_in(&project, &address, "");
        let mut restart = None;
        // Many candidates and an early failure, so that the head is back before all are judged.
        let reports = judged(&project, &["--repeat", "8", "--jobs", "4"], |count, _| {
            if count == 2 {
                restart = Some(Instant::now());
                cluster.tell("restart", 0);
            }
        });
        assert_eq!(counts(&reports), expected(8), "{address}");
        let hosts = hosts(&project);
        let passed = restart.unwrap().elapsed().as_secs_f64();
        assert!(hosts.iter().all(|host| host["seconds"].as_f64().unwrap() < passed), "{address}: {hosts:?}");
        assert!(hosts.iter().any(|host| host["done"].as_u64() > Some(0)), "{address}: {hosts:?}");
    }
}

/// The hosts of the pool, once they answer: on a busy machine they need longer than `pool status` waits.
fn hosts(project: &Project) -> Vec<Value> {
    loop {
        let status = status(project);
        let hosts = status["hosts"].as_array().unwrap();
        if !hosts.is_empty() && status["silent"] == 0 {
            return hosts.clone();
        }
    }
}

#[test]
fn a_network_that_is_cut_costs_no_candidate() {
    let project = Project::new(SCALE, CANDIDATES);
    let cluster = Cluster::start(&["toy", "toy"]);
    let relay = Relay::to(cluster.client_address.rsplit_once(':').unwrap().1.parse().unwrap());
    judge_in(&project, &format!("ray://127.0.0.1:{}", relay.port), "");
    // Ray's client tries to reconnect for this number of seconds, in place of the usual half minute.
    let (grace, longer) = ([("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "3")], Duration::from_secs(6));
    let judged = |args: &[&str], tell: &dyn Fn(usize)| judged_with(&project, args, &grace, |count, _| tell(count));
    // The line is cut before the worker is ready, while the program is being sent.
    relay.cut_after(1 << 20, longer);
    assert_eq!(counts(&judged(&[], &|_| ())), expected(1));
    assert_eq!(relay.cuts(), 1);
    // The line is cut in the middle, for a moment and for longer.
    for pause in [Duration::ZERO, longer] {
        let reports = judged(&["--repeat", "4", "--jobs", "4"], &|count| {
            if count == 6 {
                relay.cut(pause);
            }
        });
        assert_eq!(counts(&reports), expected(4), "{pause:?}");
    }
}

/// Forwards connections to a port, unless they are cut.
struct Relay {
    port: u16,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    is_cut: AtomicBool,
    cuts: AtomicUsize,
    streams: Mutex<Vec<TcpStream>>,
    /// After this many more bytes the line is cut for this time.
    after: Mutex<Option<(usize, Duration)>>,
}

impl Relay {
    fn to(there: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::<Line>::default();
        let open = Arc::clone(&line);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = (!open.is_cut.load(Ordering::Relaxed)).then(|| TcpStream::connect(("127.0.0.1", there)));
                // New connections are refused meanwhile.
                let Some(Ok(far)) = far else { continue };
                for (from, to, line) in [(&near, &far, Some(&open)), (&far, &near, None)] {
                    let (from, to, line) = (from.try_clone().unwrap(), to.try_clone().unwrap(), line.map(Arc::clone));
                    std::thread::spawn(move || pass(from, to, line));
                }
                open.streams.lock().unwrap().extend([near, far]);
            }
        });
        Self { port, line }
    }

    /// Breaks all connections, and refuses new ones for this time.
    fn cut(&self, pause: Duration) {
        self.line.cut(pause);
    }

    /// Does the same once this many bytes have been forwarded.
    fn cut_after(&self, bytes: usize, pause: Duration) {
        *self.line.after.lock().unwrap() = Some((bytes, pause));
    }

    fn cuts(&self) -> usize {
        self.line.cuts.load(Ordering::Relaxed)
    }
}

impl Line {
    fn cut(self: &Arc<Self>, pause: Duration) {
        self.is_cut.store(true, Ordering::Relaxed);
        self.cuts.fetch_add(1, Ordering::Relaxed);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let line = Arc::clone(self);
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            line.is_cut.store(false, Ordering::Relaxed);
        });
    }

    /// Counts bytes before they are forwarded, and cuts the line when its limit is reached.
    fn count(self: &Arc<Self>, bytes: usize) {
        let mut after = self.after.lock().unwrap();
        match after.take() {
            Some((left, pause)) if left <= bytes => self.cut(pause),
            Some((left, pause)) => *after = Some((left - bytes, pause)),
            None => {}
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, line: Option<Arc<Line>>) {
    let mut some = [0; 1 << 16];
    let mut step = || -> io::Result<bool> {
        let count = from.read(&mut some)?;
        line.iter().for_each(|line| line.count(count));
        to.write_all(&some[..count])?;
        Ok(count > 0)
    };
    while matches!(step(), Ok(true)) {}
    let _ = to.shutdown(Shutdown::Write);
}
