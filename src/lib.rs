//! Warpsmith: a language server for people who write Triton GPU kernels.
//!
//! Three layers, one direction (see `docs/src/architecture.md`): the model ([`syntax`], [`kernel`], [`analysis`]) is pure;
//! the features ([`rules`], [`features`], [`explore`], …) build on it; [`server`] alone knows LSP and [`worker`] alone knows Python.

pub mod chance;
pub mod fence;
#[cfg(any(feature = "worker", test))]
pub mod numbers;
pub mod protocol;

#[cfg(feature = "server")]
pub mod adapt;
#[cfg(feature = "server")]
pub mod analysis;
#[cfg(feature = "server")]
pub mod api;
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "server")]
mod clock;
#[cfg(feature = "server")]
pub mod compiler;
#[cfg(feature = "server")]
pub mod evaluate;
#[cfg(feature = "server")]
pub mod explore;
#[cfg(feature = "server")]
pub mod features;
#[cfg(feature = "server")]
pub mod kernel;
#[cfg(feature = "server")]
mod log;
#[cfg(feature = "server")]
pub mod pool;
#[cfg(feature = "server")]
pub mod python;
#[cfg(feature = "server")]
pub mod rules;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod settings;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "server")]
pub mod syntax;
#[cfg(feature = "server")]
pub mod workload;
#[cfg(feature = "server")]
pub mod workspace;

#[cfg(feature = "worker")]
pub mod worker;
