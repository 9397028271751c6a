//! The floor: the least time that a device needs for a call, from the bytes that have to be read and written.

use std::collections::BTreeMap;

use protocol::is_simulated;
use protocol::runner::{ExportedResults, LeafValue, MemoryProbe};

use super::baseline::Baseline;
use super::bench::Bench;
use super::call_needs::Needs;
use super::devices::{DeviceMemory, memory};
use super::locks::lock_first;
use super::undecided::Undecided;
use super::verdict::Floor;

/// How many parts of an argument receive other contents, for each of two calls.
const PARTS: usize = 32;
/// The same on a simulated device, where Triton's slow interpreter runs the kernels.
const PARTS_SIMULATED: usize = 4;
const MILLISECONDS: u64 = 1500;

impl Baseline {
    /// The bytes that a call reads and writes at least, measured now if they are not known yet. As for [`Self::known`],
    /// the caller must not hold the device.
    pub(super) fn needs(&self, bench: &Bench) -> Result<Needs, Undecided> {
        let mut known = lock_first(&self.needs);
        if let Some(needs) = known.as_ref() {
            return Ok(needs.clone());
        }
        let _shared = bench.shared();
        let inputs = [0, 1].map(|at: usize| self.inputs(self.trials[at].inputs.clone())).to_vec();
        let parts = if is_simulated() { PARTS_SIMULATED } else { PARTS };
        let gradients = self.original.workload.gradients;
        let touched =
            self.original.probe(bench, MemoryProbe { inputs, parts, gradients, milliseconds: MILLISECONDS })?;
        // Nothing is certain where the original could not be probed.
        Ok(known.insert(Needs::of(&touched.unwrap_or_default())).clone())
    }
}

/// The floor of a call with these results; `rate` is the device's copy rate in bytes per second.
pub(super) fn floor(needs: &Needs, results: &ExportedResults, rate: Option<f64>) -> Floor {
    bounded(needs, distinct(results), rate, memory())
}

fn bounded(needs: &Needs, result: f64, rate: Option<f64>, memory: Option<DeviceMemory>) -> Floor {
    let written = result + needs.changed;
    // The last writes may still be in the L2 cache when the call ends. The inputs are not in it when the call begins.
    let hard = memory.map(|memory| {
        let bytes = needs.certainly_read + (written - memory.l2 as f64).max(0.0);
        bytes / memory.bytes_per_second * 1000.0
    });
    Floor {
        read: needs.read,
        written,
        measured: rate.map(|rate| (needs.read + written) / rate * 1000.0),
        hard: hard.filter(|&hard| hard > 0.0),
    }
}

/// Bytes of results; of several views of one storage only the greatest counts.
fn distinct(results: &ExportedResults) -> f64 {
    let mut greatest = BTreeMap::<usize, f64>::new();
    for (at, leaf) in results.leaves.iter().enumerate().filter(|(_, leaf)| leaf.path.starts_with("result")) {
        let LeafValue::Tensor { joins, .. } = &leaf.value else { continue };
        let of_storage = greatest.entry(joins.unwrap_or(at)).or_default();
        *of_storage = of_storage.max(bytes(&leaf.value));
    }
    greatest.values().sum()
}

/// Bytes of a tensor, or 0 if it shares the memory of an argument.
fn bytes(value: &LeafValue) -> f64 {
    match value {
        LeafValue::Tensor { dtype, shape, stride, shares: None, .. } => {
            let distinct =
                shape.iter().zip(stride).map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
            distinct.product::<i64>() as f64 * width(dtype)
        }
        _ => 0.0,
    }
}

/// Bytes of an element of this dtype; 1 for types that are not listed.
pub(super) fn width(dtype: &str) -> f64 {
    match dtype {
        "float64" | "int64" | "complex64" => 8.0,
        "complex128" => 16.0,
        "float32" | "int32" | "uint32" => 4.0,
        "float16" | "bfloat16" | "int16" | "uint16" => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::runner::{ArgumentUse, Leaf};

    #[test]
    fn written_bytes_count_views_of_one_storage_once() {
        let leaf = |path: &str, rows: i64, joins: Option<usize>, shares: Option<usize>| Leaf {
            path: path.to_owned(),
            value: LeafValue::Tensor {
                class: "torch.Tensor".to_owned(),
                dtype: "float16".to_owned(),
                device: "cuda".to_owned(),
                shape: vec![rows, 100],
                stride: vec![100, 1],
                requires_grad: false,
                shares,
                joins,
                at: 0,
            },
        };
        let leaves = vec![
            leaf("result[0]", 10, None, None),
            leaf("result[1]", 10, None, None),
            leaf("result[2]", 15, Some(1), None),
            leaf("result[3]", 50, None, Some(0)),
            leaf("argument 0", 50, None, Some(0)),
        ];
        assert_eq!(distinct(&ExportedResults { leaves, buffer: None }), 2000.0 + 3000.0);
    }

    #[test]
    fn certain_needs_give_the_hard_floor_and_estimates_the_measured_one() {
        let one = |needed| ArgumentUse { bytes: 1000, tried: 64, needed, ..ArgumentUse::default() };
        let unknown = ArgumentUse { bytes: 1000, written: 500, ..ArgumentUse::default() };
        let needs = Needs::of(&[one(64), one(32), one(0), unknown]);
        assert_eq!((needs.read, needs.changed), (1500.0, 500.0));
        assert!((900.0..1200.0).contains(&needs.certainly_read), "{needs:?}");
        let memory = DeviceMemory { size: 1 << 30, l2: 700, bytes_per_second: 1e6 };
        let floor = bounded(&needs, 1000.0, Some(5e5), Some(memory));
        assert_eq!((floor.read, floor.written, floor.measured), (1500.0, 1500.0, Some(6.0)));
        let expected = (needs.certainly_read + 800.0) / 1e6 * 1000.0;
        assert!((floor.hard.unwrap() - expected).abs() < 1e-9);
        // No certain needs, and results that fit into the cache.
        assert_eq!(bounded(&Needs::default(), 600.0, None, Some(memory)).hard, None);
        assert_eq!(bounded(&needs, 1000.0, None, None).hard, None);
    }
}
