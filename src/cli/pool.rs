//! `warpsmith pool`: shows the state of a pool of GPUs.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};

use runtime::pool::{ClusterNode, ClusterStatus, GpuHost, Pool, status};
use runtime::python::environment::PythonEnvironment;

use super::exit_status::FOUND;
use super::list_format::Format;

/// Arguments of `pool`.
#[derive(Debug, clap::Args)]
pub(super) struct PoolArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show the nodes and GPUs of the pool, who uses them, and what has failed
    Status {
        /// The pool [default: `evaluator.pool` of the settings]
        #[arg(long, value_name = "ADDRESS")]
        address: Option<String>,
        /// How to write it
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

pub(super) fn run(
    PoolArgs { action: Action::Status { address, format } }: &PoolArgs,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let folder = std::env::current_dir().context("the current folder cannot be read")?;
    let loaded = crate::settings::load(&folder)?;
    let set = runtime::pool::Pool::of(&loaded.settings.evaluator);
    let named = address.clone().map(|address| Pool { address, ..Pool::default() });
    let Some(pool) = named.or(set) else {
        bail!("no pool is set: set `evaluator.pool`, or name one by --address");
    };
    let python = PythonEnvironment::of_project(&loaded, &folder).context("no Python was found; set `python`")?.python;
    let found = status(&pool, &python)?;
    match format {
        Format::Json => writeln!(out, "{}", serde_json::to_string_pretty(&found)?)?,
        Format::Text => show(&pool.address, &found, out)?,
    }
    let has_gpus = found.nodes.iter().any(|node| node.alive && node.gpus > 0);
    Ok(ExitCode::from(u8::from(!has_gpus) * FOUND))
}

fn show(address: &str, found: &ClusterStatus, out: &mut impl Write) -> std::io::Result<()> {
    let gpus: usize = found.nodes.iter().filter(|node| node.alive).map(|node| node.gpus).sum();
    let (nodes, free) = (found.nodes.iter().filter(|node| node.alive).count(), found.free);
    writeln!(out, "Pool at {address}, Ray {}: {nodes} nodes, {gpus} GPUs, {free} of them free", found.ray)?;
    for node in &found.nodes {
        show_node(node, &found.hosts, out)?;
    }
    // A client reports the same number to each of its hosts.
    let mut queued: BTreeMap<&str, usize> = BTreeMap::new();
    for session in found.hosts.iter().flat_map(|host| &host.sessions) {
        let most = queued.entry(&session.session).or_default();
        *most = session.queued.max(*most);
    }
    let busy: usize = found.hosts.iter().map(busy).sum();
    let (clients, queued) = (queued.len(), queued.values().sum::<usize>());
    let (done, failures) = (found.hosts.iter().map(|host| host.done), found.hosts.iter().map(|host| host.failures));
    let (done, failures) = (done.sum::<u64>(), failures.sum::<u64>());
    writeln!(
        out,
        "Clients {clients}; candidates: {busy} under way, {queued} waiting, {done} judged; workers that ended: {failures}"
    )?;
    if found.silent > 0 {
        writeln!(out, "{} hosts do not answer: they wait for their GPU, or are gone", found.silent)?;
    }
    Ok(())
}

fn busy(host: &GpuHost) -> usize {
    host.sessions.iter().map(|session| session.busy).sum()
}

fn show_node(node: &ClusterNode, hosts: &[GpuHost], out: &mut impl Write) -> std::io::Result<()> {
    let ClusterNode { name, model, gpus, cores, .. } = node;
    if !node.alive {
        return writeln!(out, "  {name}: gone");
    }
    writeln!(out, "  {name}: {gpus} × {model}, {cores} cores")?;
    for host in hosts.iter().filter(|host| host.id == node.id) {
        let rate = host.done as f64 / host.seconds.max(1.0) * 60.0;
        let (gpu, number, clients, done) = (&host.gpu, &host.number, host.sessions.len(), host.done);
        let busy = busy(host);
        writeln!(
            out,
            "    GPU {number}, {gpu}: {clients} clients, {busy} under way, {done} judged ({rate:.1} a minute)"
        )?;
    }
    Ok(())
}
