//! A check that a candidate touches as much memory as the original. A tile that no longer covers its row, or a grid
//! with too few programs, is fast and wrong, and a model that runs nothing can still detect that.

use std::collections::HashMap;

use protocol::{CompiledLaunches, KernelArgument};

use super::Launch;
use super::simulation::UNKNOWN;

/// The share of the original's bytes below which bytes count as missing. It is below 1 because programs are sampled.
const ENOUGH: f64 = 0.9;

/// Bytes of a tensor that are loaded and stored, with repetitions, and the size of the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bytes {
    loaded: f64,
    stored: f64,
    size: f64,
}

/// The bytes that a call loads and stores, for its arguments and results.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TensorTraffic {
    inputs: Vec<Bytes>,
    results: Vec<Bytes>,
}

impl TensorTraffic {
    /// The coverage of launches; `None` where some of them access memory whose tensor is unknown.
    pub(super) fn of(drafts: &CompiledLaunches, launches: &[Launch]) -> Option<Self> {
        let mut all: HashMap<u64, Bytes> = HashMap::new();
        for Launch { work, programs, memories, parameters, .. } in launches {
            for (at, bytes) in &work.loaded {
                all.entry(*memories.get(*at).filter(|_| *at != UNKNOWN)?).or_default().loaded += bytes * programs;
            }
            for (at, bytes) in &work.stored {
                all.entry(*memories.get(*at).filter(|_| *at != UNKNOWN)?).or_default().stored += bytes * programs;
            }
            for (memory, parameter) in memories.iter().zip(parameters) {
                if let KernelArgument::Tensor { bytes, .. } = parameter {
                    let known = all.entry(*memory).or_default();
                    known.size = known.size.max(*bytes);
                }
            }
        }
        let of =
            |memories: &[u64]| memories.iter().map(|memory| all.get(memory).copied().unwrap_or_default()).collect();
        Some(Self { inputs: of(&drafts.inputs), results: of(&drafts.results) })
    }

    /// A description of what the original touches and this call does not touch enough.
    pub(super) fn missing(&self, original: &Self) -> Option<String> {
        let less = |own: f64, original: f64, size: f64| own < ENOUGH * original.min(size);
        let megabytes = |bytes: f64| bytes / 1e6;
        for (at, (own, other)) in self.inputs.iter().zip(&original.inputs).enumerate() {
            if less(own.loaded, other.loaded, other.size) {
                let [own, other] = [own.loaded, other.loaded.min(other.size)].map(megabytes);
                return Some(format!(
                    "it reads {own:.3} MB of tensor {} of the call, the original {other:.3} MB",
                    at + 1
                ));
            }
        }
        for (at, (own, other)) in self.results.iter().zip(&original.results).enumerate() {
            if less(own.stored, other.stored, other.size) {
                let [own, other] = [own.stored, other.stored.min(other.size)].map(megabytes);
                return Some(format!("it writes {own:.3} MB of result {}, the original {other:.3} MB", at + 1));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::work::Work;

    /// A launch of ten programs that each load from the first tensor and store to the second, of a thousand bytes each.
    fn coverage(loaded: f64, stored: f64) -> Option<TensorTraffic> {
        let mut work = Work::default();
        work.loaded.insert(0, loaded);
        work.stored.insert(1, stored);
        let tensor = KernelArgument::Tensor { offset: 0, bytes: 1000.0 };
        let launch =
            Launch { work, programs: 10.0, memories: vec![7, 8], parameters: vec![tensor; 2], ..Launch::default() };
        TensorTraffic::of(&CompiledLaunches { launches: Vec::new(), inputs: vec![7], results: vec![8] }, &[launch])
    }

    #[test]
    fn a_candidate_that_accesses_less_than_the_original_is_reported() {
        let original = coverage(300.0, 100.0).unwrap();
        assert_eq!(coverage(100.0, 100.0).unwrap().missing(&original), None, "each byte once is enough");
        let lacks = |loaded, stored| coverage(loaded, stored).unwrap().missing(&original).unwrap();
        assert_eq!(lacks(50.0, 100.0), "it reads 0.001 MB of tensor 1 of the call, the original 0.001 MB");
        assert!(lacks(100.0, 50.0).starts_with("it writes"));
        // A tensor that the original does not touch need not be touched.
        assert_eq!(original.missing(&coverage(0.0, 0.0).unwrap()), None);
    }

    #[test]
    fn accesses_of_unknown_tensors_prevent_a_coverage_check() {
        let mut work = Work::default();
        work.loaded.insert(UNKNOWN, 1.0);
        assert_eq!(TensorTraffic::of(&CompiledLaunches::default(), &[Launch { work, ..Launch::default() }]), None);
    }
}
