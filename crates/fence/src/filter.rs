//! The seccomp filter of a sandboxed process, assembled as a BPF program.
#![expect(unsafe_code, reason = "filters are put up by a system call")]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use libc::{BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, c_long, sock_filter};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// System call numbers from here on belong to the x32 ABI and would bypass lists of the usual numbers.
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`, in bytes.
const NUMBER: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// The call succeeds and nothing happens.
const PRETEND: u32 = libc::SECCOMP_RET_ERRNO;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const ASK: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// The refused calls: network, other processes, and kernel facilities.
const REFUSED: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_open_by_handle_at,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_personality,
    libc::SYS_ioprio_set,
    // These create memory that outlives the process or that no limit counts.
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    // Landlock does not restrict owners and attributes.
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Calls that change modes and times, which Landlock does not restrict either. Linkers and libraries that copy files
/// set them on their own files and fail on an error, so these calls do nothing and report success.
const PRETENDED: &[c_long] = &[libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_fchmodat2, libc::SYS_utimensat];

#[cfg(target_arch = "x86_64")]
mod old {
    //! Calls that exist only on this architecture.
    pub(super) const REFUSED: &[i64] =
        &[libc::SYS_chown, libc::SYS_lchown, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load];
    pub(super) const PRETENDED: &[i64] = &[libc::SYS_chmod, libc::SYS_utime, libc::SYS_utimes, libc::SYS_futimesat];
    pub(super) const FORKS: &[i64] = &[libc::SYS_fork, libc::SYS_vfork];
}
#[cfg(not(target_arch = "x86_64"))]
mod old {
    pub(super) const REFUSED: &[i64] = &[];
    pub(super) const PRETENDED: &[i64] = &[];
    pub(super) const FORKS: &[i64] = &[];
}

/// Calls with the index of the argument that names a process; only the calling process itself is allowed.
const OWN: &[(c_long, u32)] = &[
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_migrate_pages, 0),
    (libc::SYS_move_pages, 0),
];
/// Further such calls, for a kernel whose Landlock does not restrict signals.
const OWN_SIGNALS: &[(c_long, u32)] = &[(libc::SYS_kill, 0), (libc::SYS_tgkill, 0), (libc::SYS_tkill, 0)];
const SIGNALS: &[c_long] = &[libc::SYS_pidfd_send_signal, libc::SYS_rt_sigqueueinfo, libc::SYS_rt_tgsigqueueinfo];

/// The parts of the filter that depend on the kernel and on the limits.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Another process decides whether a new process may start.
    pub asks: bool,
    /// Landlock restricts signals.
    pub signals_bounded: bool,
    /// Landlock restricts truncation.
    pub truncation_bounded: bool,
}

struct Program(Vec<sock_filter>);

impl Program {
    fn step(&mut self, code: u32, k: u32) -> &mut Self {
        self.jump(code, k, 0, 0)
    }

    fn jump(&mut self, code: u32, k: u32, yes: u8, no: u8) -> &mut Self {
        self.0.push(sock_filter { code: code as u16, jt: yes, jf: no, k });
        self
    }

    fn load(&mut self, at: u32) -> &mut Self {
        self.step(BPF_LD | BPF_W | BPF_ABS, at)
    }

    fn answer(&mut self, action: u32) -> &mut Self {
        self.step(BPF_RET | BPF_K, action)
    }

    /// Skips the next `count` instructions unless the loaded value equals `k`.
    fn skip_unless(&mut self, k: u32, count: u8) -> &mut Self {
        self.jump(BPF_JMP | BPF_JEQ | BPF_K, k, 0, count)
    }

    fn answer_to(&mut self, calls: &[c_long], action: u32) -> &mut Self {
        for call in calls {
            self.skip_unless(*call as u32, 1).answer(action);
        }
        self
    }

    /// Allows the call if the argument is 0 or `pid`.
    fn own(&mut self, (call, index): (c_long, u32), pid: u32) {
        self.skip_unless(call as u32, 5).load(argument(index));
        self.jump(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0).jump(BPF_JMP | BPF_JEQ | BPF_K, pid, 1, 0);
        self.answer(REFUSE).answer(ALLOW);
    }
}

/// Assembles the filter of the process `pid`.
fn program(policy: Policy, pid: u32) -> Vec<sock_filter> {
    let mut program = Program(Vec::new());
    program.load(ARCHITECTURE_AT).jump(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    program.answer(libc::SECCOMP_RET_KILL_PROCESS).load(NUMBER);
    if cfg!(target_arch = "x86_64") {
        program.jump(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1).answer(libc::SECCOMP_RET_KILL_PROCESS);
    }
    let start = if policy.asks { ASK } else { ALLOW };
    // The flags of `clone3` are in memory, which a filter cannot read; libraries fall back to `clone`.
    program.answer_to(&[libc::SYS_clone3], UNKNOWN);
    program.skip_unless(libc::SYS_clone as u32, 6).load(argument(0));
    program.jump(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1).answer(REFUSE);
    program.jump(BPF_JMP | BPF_JSET | BPF_K, libc::CLONE_THREAD as u32, 0, 1).answer(ALLOW).answer(start);
    program.answer_to(old::FORKS, start);
    // A socket pair is a bidirectional pipe, which is harmless.
    program.skip_unless(libc::SYS_socketpair as u32, 4).load(argument(0));
    program.skip_unless(libc::AF_UNIX as u32, 1).answer(ALLOW).answer(REFUSE);
    program.skip_unless(libc::SYS_setpriority as u32, 7).load(argument(0));
    program.jump(BPF_JMP | BPF_JEQ | BPF_K, libc::PRIO_PROCESS, 0, 3).load(argument(1));
    program.jump(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0).jump(BPF_JMP | BPF_JEQ | BPF_K, pid, 1, 0);
    program.answer(REFUSE).answer(ALLOW);
    program.answer_to(REFUSED, REFUSE).answer_to(old::REFUSED, REFUSE);
    program.answer_to(PRETENDED, PRETEND).answer_to(old::PRETENDED, PRETEND);
    let signals = if policy.signals_bounded { &[][..] } else { OWN_SIGNALS };
    for call in OWN.iter().chain(signals) {
        program.own(*call, pid);
    }
    if !policy.signals_bounded {
        program.answer_to(SIGNALS, REFUSE);
    }
    if !policy.truncation_bounded {
        program.answer_to(&[libc::SYS_truncate], REFUSE);
    }
    program.answer(ALLOW);
    program.0
}

/// The flags of `clone` that create namespaces.
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWCGROUP) as u32;

/// Installs the filter in this process, permanently. Returns the descriptor on which the supervising process answers,
/// with [`Policy::asks`].
///
/// # Errors
/// Returns an error when the kernel refuses the filter.
pub fn install(policy: Policy) -> io::Result<Option<OwnedFd>> {
    let mut steps = program(policy, std::process::id());
    let length = u16::try_from(steps.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: steps.as_mut_ptr() };
    let flags = if policy.asks { libc::SECCOMP_FILTER_FLAG_NEW_LISTENER } else { 0 };
    // SAFETY: the program lives until the kernel has copied it; a listener's descriptor is ours.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        let put = libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program);
        if put < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(policy.asks.then(|| OwnedFd::from_raw_fd(put as i32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The action of the program for a call: an interpreter of the few instructions that it uses.
    fn verdict(program: &[sock_filter], architecture: u32, call: u32, arguments: [u32; 2]) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            let code = u32::from(step.code);
            let taken = match code & 0x7 {
                BPF_LD => {
                    loaded = match step.k {
                        NUMBER => call,
                        ARCHITECTURE_AT => architecture,
                        place => arguments[(place as usize - 16) / 8],
                    };
                    continue;
                }
                BPF_RET => return step.k,
                _ => match code & 0xf0 {
                    BPF_JEQ => loaded == step.k,
                    BPF_JGE => loaded >= step.k,
                    _ => loaded & step.k != 0,
                },
            };
            at += usize::from(if taken { step.jt } else { step.jf });
        }
    }

    #[test]
    fn the_seccomp_program_follows_the_lists_of_system_calls() {
        const PID: u32 = 77;
        let policy = Policy { asks: true, signals_bounded: false, truncation_bounded: false };
        let steps = program(policy, PID);
        let ask = |call: c_long, first: u32, second: u32| verdict(&steps, ARCHITECTURE, call as u32, [first, second]);
        for call in REFUSED.iter().chain(old::REFUSED) {
            assert_eq!(ask(*call, 0, 0), REFUSE, "{call}");
        }
        for call in PRETENDED.iter().chain(old::PRETENDED) {
            assert_eq!(ask(*call, 0, 0), PRETEND, "{call}");
        }
        for (call, _) in OWN.iter().chain(OWN_SIGNALS) {
            assert_eq!([ask(*call, 0, 0), ask(*call, PID, 0), ask(*call, 1, 0)], [ALLOW, ALLOW, REFUSE], "{call}");
        }
        let priority = |which, who| ask(libc::SYS_setpriority, which, who);
        assert_eq!([priority(0, 0), priority(0, PID), priority(0, 1), priority(2, 0)], [ALLOW, ALLOW, REFUSE, REFUSE]);
        let clone = |flags: i32| ask(libc::SYS_clone, flags as u32, 0);
        assert_eq!(clone(libc::SIGCHLD), ASK);
        assert_eq!(clone(libc::CLONE_THREAD | libc::CLONE_VM), ALLOW);
        assert_eq!(clone(libc::CLONE_NEWUSER | libc::SIGCHLD), REFUSE);
        assert_eq!(ask(libc::SYS_clone3, 0, 0), UNKNOWN);
        assert_eq!(ask(libc::SYS_socketpair, libc::AF_UNIX as u32, 0), ALLOW);
        assert_eq!(ask(libc::SYS_socketpair, libc::AF_INET as u32, 0), REFUSE);
        assert_eq!(ask(libc::SYS_openat, 0, 0), ALLOW);
        assert_eq!(ask(libc::SYS_truncate, 0, 0), REFUSE);
        assert_eq!(verdict(&steps, 0x4000_0003, 1, [0, 0]), libc::SECCOMP_RET_KILL_PROCESS);
        assert_eq!(verdict(&steps, ARCHITECTURE, X32 | 41, [0, 0]), libc::SECCOMP_RET_KILL_PROCESS);
        let lenient = program(Policy { asks: false, signals_bounded: true, truncation_bounded: true }, PID);
        let ask = |call: c_long| verdict(&lenient, ARCHITECTURE, call as u32, [1, 0]);
        assert_eq!([ask(libc::SYS_kill), ask(libc::SYS_truncate), ask(libc::SYS_clone)], [ALLOW; 3]);
    }
}
