//! The outline of a file: its kernels and the functions that launch them, as a tree.

use model::kernel::{Config, Kernel, Module};
use model::syntax::{Source, Span};

use super::describe;

/// An entry of the outline.
#[derive(Clone, Debug, PartialEq)]
pub struct OutlineItem {
    /// The name that is shown; never empty.
    pub name: String,
    /// The text that is shown beside the name.
    pub detail: String,
    /// The kind of the entry.
    pub kind: OutlineKind,
    /// The span of the whole entry.
    pub span: Span,
    /// The span of the name.
    pub name_span: Span,
    /// The entries inside this one.
    pub children: Vec<OutlineItem>,
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutlineKind {
    /// A kernel, or a function that kernels call.
    Kernel,
    /// A compile-time parameter or constant.
    Constexpr,
    /// A configuration of `@triton.autotune`.
    Config,
    /// A function that launches kernels.
    Host,
    /// A launch.
    Launch,
}

/// The outline of a file, in the order of the text.
#[must_use]
pub fn outline(source: &Source, module: &Module) -> Vec<OutlineItem> {
    let mut entries: Vec<OutlineItem> = module.kernels.iter().map(|kernel| of_kernel(source, module, kernel)).collect();
    for (at, host) in module.hosts.iter().enumerate() {
        let launches = module.launches.iter().filter(|launch| launch.host == Some(at));
        let children: Vec<OutlineItem> = launches.map(|launch| of_launch(source, launch)).collect();
        let mut names: Vec<&str> = children.iter().map(|child| child.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        entries.push(OutlineItem {
            name: host.qualname.clone(),
            detail: format!("launches {}", names.join(", ")),
            kind: OutlineKind::Host,
            span: host.span,
            name_span: host.name_span,
            children,
        });
    }
    let at_top = module.launches.iter().filter(|launch| launch.host.is_none());
    entries.extend(at_top.map(|launch| of_launch(source, launch)));
    for name in super::complete::constexpr_globals(module) {
        let globals = module.globals.iter().filter(|global| global.name == name);
        entries.extend(globals.map(|global| OutlineItem {
            name: name.to_owned(),
            detail: one_line(source.slice(global.value.span)),
            kind: OutlineKind::Constexpr,
            span: global.span,
            name_span: Span::new(global.span.start, global.span.start + name.len()),
            children: Vec::new(),
        }));
    }
    entries.sort_by_key(|entry| entry.span);
    entries
}

fn of_kernel(source: &Source, module: &Module, kernel: &Kernel) -> OutlineItem {
    let configs = kernel.autotune.iter().filter_map(|autotune| autotune.configs.as_ref()).flatten();
    let params = kernel.params.iter().filter(|param| param.constexpr).map(|param| OutlineItem {
        name: param.name.clone(),
        detail: describe::source_param(param, source.text()),
        kind: OutlineKind::Constexpr,
        span: param.span,
        name_span: param.name_span,
        children: Vec::new(),
    });
    let launches = module.launches_of(&kernel.name).count();
    let is_helper = launches == 0 && module.called_in_kernels().contains(&kernel.name);
    let mut children: Vec<OutlineItem> = configs.map(|config| of_config(source, config)).chain(params).collect();
    children.sort_by_key(|entry| entry.span);
    OutlineItem {
        name: kernel.name.clone(),
        detail: if is_helper { "helper".to_owned() } else { "kernel".to_owned() },
        kind: OutlineKind::Kernel,
        span: kernel.span,
        name_span: kernel.name_span,
        children,
    }
}

fn of_config(source: &Source, config: &Config) -> OutlineItem {
    let parts = config.meta.iter().chain(&config.options);
    let parts: Vec<String> =
        parts.map(|(name, value)| format!("{name}={}", one_line(source.slice(value.span)))).collect();
    OutlineItem {
        name: parts.join(", "),
        detail: "configuration".to_owned(),
        kind: OutlineKind::Config,
        span: config.span,
        name_span: config.span,
        children: Vec::new(),
    }
    .named("Config")
}

fn of_launch(source: &Source, launch: &model::kernel::Launch) -> OutlineItem {
    OutlineItem {
        name: one_line(source.slice(launch.target.span)),
        detail: format!("launch on {}", one_line(source.slice(launch.grid.span))),
        kind: OutlineKind::Launch,
        span: launch.span,
        name_span: launch.target.span,
        children: Vec::new(),
    }
    .named("launch")
}

impl OutlineItem {
    /// Gives an entry without a name another one, since editors refuse empty names.
    fn named(mut self, stand_in: &str) -> Self {
        if self.name.trim().is_empty() {
            stand_in.clone_into(&mut self.name);
        }
        self
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
