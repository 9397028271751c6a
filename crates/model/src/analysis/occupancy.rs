//! Occupancy: the number of a kernel's warps that a multiprocessor holds at once, and the resource that limits it.

use std::fmt;

/// The resources of a multiprocessor of one compute capability. Source: the technical specifications of NVIDIA's CUDA
/// programming guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiprocessorLimits {
    /// The compute capability times ten: `90` for 9.0.
    pub capability: u32,
    /// Maximum number of resident warps.
    pub warps: u32,
    /// Maximum number of resident blocks.
    pub blocks: u32,
    /// Shared memory of the multiprocessor in bytes.
    pub shared: u32,
    /// Maximum shared memory of one block in bytes, when it opts in to more than the usual 48 KiB as Triton does.
    pub shared_of_block: u32,
    /// Shared memory in bytes that the system reserves in each block.
    reserved: u32,
    /// Allocation unit of a block's shared memory in bytes.
    unit: u32,
}

/// Number of 32-bit registers of a multiprocessor, the same for every capability in the table.
const REGISTERS: u32 = 65_536;
/// Partitions of a multiprocessor: each has its own registers and warps.
const PARTS: u32 = 4;
/// Allocation unit of a warp's registers.
const REGISTER_UNIT: u32 = 256;
/// Threads in a warp.
const LANES: u32 = 32;
/// Maximum number of threads in a block.
const THREADS: u32 = 1024;

/// A row of the table, with shared memory in KiB. Since Ampere the system reserves 1 KiB in each block.
const fn row(capability: u32, warps: u32, blocks: u32, shared: u32, shared_of_block: u32) -> MultiprocessorLimits {
    let (reserved, unit) = if capability < 80 { (0, 256) } else { (1024, 128) };
    MultiprocessorLimits {
        capability,
        warps,
        blocks,
        shared: shared << 10,
        shared_of_block: shared_of_block << 10,
        reserved,
        unit,
    }
}

static LIMITS: [MultiprocessorLimits; 12] = [
    row(70, 64, 32, 96, 96),
    row(72, 64, 32, 96, 96),
    row(75, 32, 16, 64, 64),
    row(80, 64, 32, 164, 163),
    row(86, 48, 16, 100, 99),
    row(87, 48, 16, 164, 163),
    row(89, 48, 24, 100, 99),
    row(90, 64, 32, 228, 227),
    row(100, 64, 32, 228, 227),
    row(103, 64, 32, 228, 227),
    row(120, 48, 24, 100, 99),
    row(121, 48, 24, 100, 99),
];

/// The resources that a program uses; a program is one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockUsage {
    /// Registers of each thread.
    pub registers: u32,
    /// Shared memory in bytes.
    pub shared: u32,
    /// Number of warps.
    pub warps: u32,
}

/// The occupancy of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Resident blocks.
    pub blocks: u32,
    /// Resident warps.
    pub warps: u32,
    /// Maximum number of resident warps.
    pub most: u32,
    /// The resource that limits the occupancy; `None` when it is complete.
    pub limit: Option<OccupancyLimit>,
}

/// A resource that limits the occupancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OccupancyLimit {
    /// The register file.
    Registers,
    /// Shared memory.
    Shared,
    /// Warps: too few are left for another block.
    Warps,
    /// The maximum number of blocks.
    Blocks,
}

impl MultiprocessorLimits {
    /// The limits of a compute capability (`90` for 9.0); `None` when the table lacks it.
    #[must_use]
    pub fn of(capability: u32) -> Option<&'static Self> {
        LIMITS.iter().find(|limits| limits.capability == capability)
    }

    /// The occupancy for programs of this usage; `None` when such a program cannot run at all.
    #[must_use]
    pub fn occupancy(&self, usage: BlockUsage) -> Option<Occupancy> {
        if usage.warps == 0 || usage.warps * LANES > THREADS || usage.shared > self.shared_of_block {
            return None;
        }
        let of_warp = (usage.registers * LANES).next_multiple_of(REGISTER_UNIT).max(1);
        let by_registers = REGISTERS / PARTS / of_warp * PARTS / usage.warps;
        let of_block = (usage.shared + self.reserved).next_multiple_of(self.unit).max(1);
        let limits = [
            (by_registers, OccupancyLimit::Registers),
            (self.shared / of_block, OccupancyLimit::Shared),
            (self.warps / usage.warps, OccupancyLimit::Warps),
            (self.blocks, OccupancyLimit::Blocks),
        ];
        let (blocks, limit) = limits.into_iter().min()?;
        let warps = blocks * usage.warps;
        let limit = (warps < self.warps).then_some(limit);
        (blocks > 0).then_some(Occupancy { blocks, warps, most: self.warps, limit })
    }
}

/// Maximum shared memory (LDS) in bytes of a workgroup on one of AMD's architectures (`gfx942`); `None` when not known.
#[must_use]
pub fn shared_of_amd(architecture: &str) -> Option<u32> {
    const BY_START: [(&str, Option<u32>); 6] = [
        ("gfx950", Some(160)),
        ("gfx125", None),
        ("gfx9", Some(64)),
        ("gfx10", Some(64)),
        ("gfx11", Some(64)),
        ("gfx12", Some(64)),
    ];
    let found = BY_START.iter().find(|(start, _)| architecture.starts_with(start))?;
    Some(found.1? << 10)
}

impl Occupancy {
    /// Resident warps as a percentage of the maximum: `12.5`, `100`.
    #[must_use]
    pub fn percent(&self) -> f64 {
        (f64::from(self.warps) / f64::from(self.most) * 1000.0).round() / 10.0
    }
}

impl fmt::Display for OccupancyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Registers => "registers",
            Self::Shared => "shared memory",
            Self::Warps => "warps",
            Self::Blocks => "blocks",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occupancy(
        capability: u32,
        warps: u32,
        registers: u32,
        shared: u32,
    ) -> Option<(u32, u32, Option<OccupancyLimit>)> {
        let usage = BlockUsage { registers, shared, warps };
        let found = MultiprocessorLimits::of(capability).unwrap().occupancy(usage)?;
        Some((found.blocks, found.warps, found.limit))
    }

    /// Shared memory in bytes that a block can have, as `cudaDevAttrMaxSharedMemoryPerBlockOptin` reports on such GPUs.
    #[test]
    fn shared_memory_limits_agree_with_cuda() {
        for (capability, bytes) in
            [(75, 65_536), (80, 166_912), (86, 101_376), (89, 101_376), (90, 232_448), (100, 232_448), (120, 101_376)]
        {
            assert_eq!(MultiprocessorLimits::of(capability).unwrap().shared_of_block, bytes, "{capability}");
        }
        assert_eq!(MultiprocessorLimits::of(91), None);
        let amd = ["gfx942", "gfx950", "gfx1201", "gfx1250", "gfx803"].map(shared_of_amd);
        assert_eq!(amd, [Some(65_536), Some(163_840), Some(65_536), None, None]);
    }

    /// For each capability: warps, registers and shared memory of a block, and the blocks that fit by CUDA's occupancy
    /// calculator (registers of a warp in units of 256 within a quarter of 16,384; 1 KiB more shared memory from 8.0
    /// on).
    #[test]
    fn occupancy_agrees_with_cudas_calculator() {
        use OccupancyLimit::{Blocks, Registers, Shared, Warps};
        for (capability, warps, registers, shared, expected) in [
            // 8 warps with 32 registers reach full occupancy.
            (80, 8, 32, 0, (8, 64, None)),
            (90, 8, 32, 0, (8, 64, None)),
            (86, 8, 32, 0, (6, 48, None)),
            (75, 8, 32, 0, (4, 32, None)),
            // 64 registers: 2,048 a warp, 8 warps a quarter, 32 in all.
            (80, 8, 64, 0, (4, 32, Some(Registers))),
            // 190 registers: 6,144 a warp, 2 warps a quarter, 8 in all.
            (90, 4, 190, 49_152, (2, 8, Some(Registers))),
            // 255 registers of 8 warps: 8,192 a warp, one block of 65,536.
            (90, 8, 255, 0, (1, 8, Some(Registers))),
            // 168 registers: 5,376 a warp, 3 warps a quarter.
            (90, 4, 168, 0, (3, 12, Some(Registers))),
            // 48 KiB and 1 KiB: four times in 228 KiB, twice in 100 KiB, three times in 164 KiB.
            (90, 4, 32, 49_152, (4, 16, Some(Shared))),
            (89, 4, 32, 49_152, (2, 8, Some(Shared))),
            (80, 4, 32, 49_152, (3, 12, Some(Shared))),
            // Turing reserves nothing: 32 KiB twice in 64 KiB.
            (75, 4, 32, 32_768, (2, 8, Some(Shared))),
            (90, 4, 32, 232_448, (1, 4, Some(Shared))),
            // Blocks of one warp.
            (90, 1, 32, 0, (32, 32, Some(Blocks))),
            (86, 1, 32, 0, (16, 16, Some(Blocks))),
            (89, 1, 32, 0, (24, 24, Some(Blocks))),
            (120, 1, 32, 0, (24, 24, Some(Blocks))),
            // 32 of 48 warps, and no second block of 32.
            (86, 32, 32, 0, (1, 32, Some(Warps))),
        ] {
            assert_eq!(
                occupancy(capability, warps, registers, shared),
                Some(expected),
                "{capability} {warps} {registers}"
            );
        }
    }

    #[test]
    fn what_cannot_run_has_no_occupancy() {
        assert_eq!(occupancy(90, 4, 32, 232_449), None);
        assert_eq!(occupancy(90, 16, 255, 0), None, "more registers than there are");
        assert_eq!(occupancy(90, 33, 16, 0), None);
        assert_eq!(occupancy(90, 0, 16, 0), None);
    }

    #[test]
    fn percents_are_rounded() {
        let of = |warps, most| Occupancy { blocks: 1, warps, most, limit: None }.percent();
        assert_eq!([of(8, 64), of(64, 64), of(16, 48)].map(|percent| percent.to_string()), ["12.5", "100", "33.3"]);
    }
}
