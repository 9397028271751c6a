//! Peak rates and sizes of GPUs, by their makers' data sheets.

use serde::Serialize;

/// A GPU that the model knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gpu {
    /// The name that the driver reports: `NVIDIA H200`.
    pub name: &'static str,
    /// Compute capability, `90` for 9.0.
    pub capability: u32,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The boost clock of the multiprocessors in GHz.
    pub clock: f64,
    /// Memory bandwidth in bytes per nanosecond (GB/s).
    pub bandwidth: f64,
    /// The size of the L2 cache in MiB.
    pub l2: f64,
    /// Multiply-adds per clock of one multiprocessor's tensor cores, on 16-bit factors with sums in fp32.
    pub tensor: f64,
    /// fp32 lanes of one multiprocessor.
    pub lanes: f64,
}

/// Name, capability, multiprocessors, clock, bandwidth, L2, tensor cores, lanes.
type Row = (&'static str, u32, u32, f64, f64, f64, f64, f64);

const GPUS: &[Row] = &[
    ("NVIDIA B200", 100, 148, 1.85, 8000.0, 126.0, 4096.0, 128.0),
    ("NVIDIA H200", 90, 132, 1.83, 4800.0, 50.0, 2048.0, 128.0),
    ("NVIDIA H100 80GB HBM3", 90, 132, 1.83, 3350.0, 50.0, 2048.0, 128.0),
    ("NVIDIA H100 PCIe", 90, 114, 1.62, 2039.0, 50.0, 2048.0, 128.0),
    ("NVIDIA L40S", 89, 142, 2.52, 864.0, 96.0, 512.0, 128.0),
    ("NVIDIA L4", 89, 58, 2.04, 300.0, 48.0, 512.0, 128.0),
    ("NVIDIA GeForce RTX 4090", 89, 128, 2.52, 1008.0, 72.0, 256.0, 128.0),
    ("NVIDIA A100-SXM4-80GB", 80, 108, 1.41, 2039.0, 40.0, 1024.0, 64.0),
    ("NVIDIA A100-SXM4-40GB", 80, 108, 1.41, 1555.0, 40.0, 1024.0, 64.0),
    ("NVIDIA A10", 86, 72, 1.695, 600.0, 6.0, 512.0, 128.0),
    ("NVIDIA GeForce RTX 3090", 86, 82, 1.695, 936.0, 6.0, 256.0, 128.0),
];

impl Gpu {
    /// All known GPUs.
    pub fn all() -> impl Iterator<Item = Self> {
        GPUS.iter().map(|&(name, capability, multiprocessors, clock, bandwidth, l2, tensor, lanes)| Self {
            name,
            capability,
            multiprocessors,
            clock,
            bandwidth,
            l2,
            tensor,
            lanes,
        })
    }

    /// The GPU with the name that a driver reports.
    #[must_use]
    pub(crate) fn of_device(name: &str) -> Option<Self> {
        Self::all().find(|gpu| gpu.name == name)
    }

    /// The GPU that a part of its name means: `h200`.
    ///
    /// # Errors
    /// Returns the names of all known GPUs when the text means none of them.
    pub fn named(name: &str) -> Result<Self, String> {
        let plain = |text: &str| text.to_lowercase().replace([' ', '-', '_'], "");
        let meant = plain(name);
        // `a10` must not match an A100.
        let is_meant: [&dyn Fn(&Self) -> bool; 2] =
            [&|gpu| plain(gpu.name).ends_with(&meant), &|gpu| plain(gpu.name).contains(&meant)];
        let found = is_meant.iter().find_map(|is_meant| Self::all().find(|gpu| is_meant(gpu)));
        found.filter(|_| !meant.is_empty()).ok_or_else(|| {
            let known: Vec<&str> = Self::all().map(|gpu| gpu.name).collect();
            format!("there is no model of the GPU `{name}`; choose one of {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::analysis::occupancy::MultiprocessorLimits;

    #[test]
    fn gpus_are_known_by_parts_of_their_names() {
        assert_eq!(Gpu::named("h200").unwrap().name, "NVIDIA H200");
        assert_eq!(Gpu::named("RTX 4090").unwrap().capability, 89);
        assert_eq!(Gpu::named("H100").unwrap().bandwidth, 3350.0);
        // The table lists the longer names before these.
        assert_eq!(["a10", "L4"].map(|name| Gpu::named(name).unwrap().name), ["NVIDIA A10", "NVIDIA L4"]);
        assert_eq!(Gpu::of_device("NVIDIA H200").unwrap().capability, 90);
        assert_eq!(Gpu::of_device("NVIDIA H200 MIG 1g.18gb"), None);
        assert!(Gpu::named("mi300").unwrap_err().contains("NVIDIA L40S"));
        assert!(Gpu::named(" ").is_err());
    }

    #[test]
    fn peak_rates_agree_with_the_data_sheets() {
        for (name, tera) in
            [("h200", 989.0), ("A100-SXM4-80GB", 312.0), ("l40s", 362.0), ("b200", 2250.0), ("4090", 165.0)]
        {
            let gpu = Gpu::named(name).unwrap();
            let most = 2.0 * gpu.tensor * f64::from(gpu.multiprocessors) * gpu.clock / 1000.0;
            assert!((most / tera - 1.0).abs() < 0.03, "{name}: {most}");
        }
        assert!(Gpu::all().all(|gpu| MultiprocessorLimits::of(gpu.capability).is_some()));
    }
}
