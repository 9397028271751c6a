//! How many warps of a kernel are on a multiprocessor at once, and what keeps it from more.

use std::fmt;

/// What a multiprocessor of one compute capability has: the technical specifications of NVIDIA's CUDA programming guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The compute capability, `90` for 9.0.
    pub capability: u32,
    /// Warps that are there at once.
    pub warps: u32,
    /// Blocks that are there at once.
    pub blocks: u32,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Bytes of shared memory that one block can have, when it asks for more than the usual 48 KiB as Triton does.
    pub shared_of_block: u32,
    /// Bytes of shared memory of each block that are the system's.
    reserved: u32,
    /// What a block's shared memory is rounded up to.
    unit: u32,
}

/// Registers of 32 bits of a multiprocessor, of every capability that is listed.
const REGISTERS: u32 = 65_536;
/// Each quarter of a multiprocessor has its own registers and warps.
const PARTS: u32 = 4;
/// What the registers of a warp are rounded up to.
const REGISTER_UNIT: u32 = 256;
/// Lanes of a warp.
const LANES: u32 = 32;
/// Threads of a block, at most.
const THREADS: u32 = 1024;

/// A row of the table: shared memory in KiB; since Ampere they reserve one for the system.
const fn row(capability: u32, warps: u32, blocks: u32, shared: u32, shared_of_block: u32) -> Limits {
    let (reserved, unit) = if capability < 80 { (0, 256) } else { (1024, 128) };
    Limits { capability, warps, blocks, shared: shared << 10, shared_of_block: shared_of_block << 10, reserved, unit }
}

static LIMITS: [Limits; 12] = [
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

/// What a program, which is one block, takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Registers of each thread.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Warps.
    pub warps: u32,
}

/// How full a multiprocessor gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks that are there at once.
    pub blocks: u32,
    /// Their warps.
    pub warps: u32,
    /// The most warps that could be there.
    pub most: u32,
    /// What there is no more of; `None` when all warps are there.
    pub limit: Option<Limit>,
}

/// What there is no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
    /// Warps: those that are left are too few for one more block.
    Warps,
    /// Blocks.
    Blocks,
}

impl Limits {
    /// The limits of a compute capability (`90` for 9.0), where they are known.
    #[must_use]
    pub fn of(capability: u32) -> Option<&'static Self> {
        LIMITS.iter().find(|limits| limits.capability == capability)
    }

    /// How full a multiprocessor gets; `None` for what cannot run at all.
    #[must_use]
    pub fn occupancy(&self, usage: Usage) -> Option<Occupancy> {
        if usage.warps == 0 || usage.warps * LANES > THREADS || usage.shared > self.shared_of_block {
            return None;
        }
        let of_warp = (usage.registers * LANES).next_multiple_of(REGISTER_UNIT).max(1);
        let by_registers = REGISTERS / PARTS / of_warp * PARTS / usage.warps;
        let of_block = (usage.shared + self.reserved).next_multiple_of(self.unit).max(1);
        let limits = [
            (by_registers, Limit::Registers),
            (self.shared / of_block, Limit::Shared),
            (self.warps / usage.warps, Limit::Warps),
            (self.blocks, Limit::Blocks),
        ];
        let (blocks, limit) = limits.into_iter().min()?;
        let warps = blocks * usage.warps;
        let limit = (warps < self.warps).then_some(limit);
        (blocks > 0).then_some(Occupancy { blocks, warps, most: self.warps, limit })
    }
}

/// Bytes of shared memory (LDS) that a workgroup of one of AMD's architectures (`gfx942`) can have, where that is known.
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
    /// In percent, as one says it: `12.5`, `100`.
    #[must_use]
    pub fn percent(&self) -> f64 {
        (f64::from(self.warps) / f64::from(self.most) * 1000.0).round() / 10.0
    }
}

impl fmt::Display for Limit {
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

    fn occupancy(capability: u32, warps: u32, registers: u32, shared: u32) -> Option<(u32, u32, Option<Limit>)> {
        let usage = Usage { registers, shared, warps };
        let found = Limits::of(capability).unwrap().occupancy(usage)?;
        Some((found.blocks, found.warps, found.limit))
    }

    /// Bytes of shared memory that a block can have, as `cudaDevAttrMaxSharedMemoryPerBlockOptin` tells on such GPUs.
    #[test]
    fn a_block_has_so_much_shared_memory() {
        for (capability, bytes) in
            [(75, 65_536), (80, 166_912), (86, 101_376), (89, 101_376), (90, 232_448), (100, 232_448), (120, 101_376)]
        {
            assert_eq!(Limits::of(capability).unwrap().shared_of_block, bytes, "{capability}");
        }
        assert_eq!(Limits::of(91), None);
        let amd = ["gfx942", "gfx950", "gfx1201", "gfx1250", "gfx803"].map(shared_of_amd);
        assert_eq!(amd, [Some(65_536), Some(163_840), Some(65_536), None, None]);
    }

    /// Of each capability: warps, registers and shared memory of a block, and the blocks that fit as CUDA's occupancy
    /// calculator has it (registers of a warp in units of 256 within a quarter of 16,384; 1 KiB of shared memory more from
    /// 8.0 on).
    #[test]
    fn blocks_fit_as_cuda_says() {
        use Limit::{Blocks, Registers, Shared, Warps};
        for (capability, warps, registers, shared, expected) in [
            // 8 warps of 32 registers fill all.
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
            // Turing keeps nothing for itself: 32 KiB twice in 64 KiB.
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
