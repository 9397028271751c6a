//! What breaks between a client and the cluster: the head, and the way there.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::judging::{Project, SCALE};
use crate::ray::{Cluster, judge_in};
use crate::{CANDIDATES, counts, expected, judged, status};

#[test]
fn a_head_that_starts_again_costs_no_candidate() {
    let project = Project::new(SCALE, CANDIDATES);
    let mut cluster = Cluster::start(&["toy", "toy"]);
    for address in [cluster.address.clone(), cluster.client_address.clone()] {
        judge_in(&project, &address, "");
        let reports = judged(&project, &["--repeat", "4", "--jobs", "4"], |count, _| {
            if count == 6 {
                cluster.tell("restart", 0);
            }
        });
        assert_eq!(counts(&reports), expected(4), "{address}");
        // The hosts are new, and have judged what is theirs.
        let done: u64 =
            status(&project)["hosts"].as_array().unwrap().iter().filter_map(|host| host["done"].as_u64()).sum();
        assert!((1..20).contains(&done), "{address}: {done}");
    }
}

#[test]
fn a_network_that_is_cut_costs_no_candidate() {
    let project = Project::new(SCALE, CANDIDATES);
    let cluster = Cluster::start(&["toy", "toy"]);
    let relay = Relay::to(cluster.client_address.rsplit_once(':').unwrap().1.parse().unwrap());
    judge_in(&project, &format!("ray://127.0.0.1:{}", relay.port), "");
    // For a moment, and for longer than Ray waits for it.
    for pause in [Duration::ZERO, Duration::from_secs(40)] {
        let reports = judged(&project, &["--repeat", "4", "--jobs", "4"], |count, _| {
            if count == 6 {
                relay.cut(pause);
            }
        });
        assert_eq!(counts(&reports), expected(4), "{pause:?}");
    }
}

/// Passes on what comes to a port, unless it is cut.
struct Relay {
    port: u16,
    is_cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(there: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_cut, streams) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (cut, open) = (Arc::clone(&is_cut), Arc::clone(&streams));
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = (!cut.load(Ordering::Relaxed)).then(|| TcpStream::connect(("127.0.0.1", there)));
                // Whoever comes meanwhile is sent away.
                let Some(Ok(far)) = far else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || pass(from, to));
                }
                open.lock().unwrap().extend([near, far]);
            }
        });
        Self { port, is_cut, streams }
    }

    /// Breaks all connections, and lets nobody connect for so long.
    fn cut(&self, pause: Duration) {
        self.is_cut.store(true, Ordering::Relaxed);
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let is_cut = Arc::clone(&self.is_cut);
        std::thread::spawn(move || {
            std::thread::sleep(pause);
            is_cut.store(false, Ordering::Relaxed);
        });
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut some = [0; 1 << 16];
    let mut step = || -> io::Result<bool> {
        let count = from.read(&mut some)?;
        to.write_all(&some[..count])?;
        Ok(count > 0)
    };
    while matches!(step(), Ok(true)) {}
    let _ = to.shutdown(Shutdown::Write);
}
