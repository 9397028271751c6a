//! Configurations near the current one.

use super::kind::Tiles;
use super::numbers::LaunchNumbers;

/// The maximum number of configurations.
const MOST: usize = 6;
/// Triton's default where a launch does not set `num_warps`.
const WARPS: i64 = 4;
/// The values of `num_warps` that Triton accepts.
const KNOWN_WARPS: [i64; 6] = [1, 2, 4, 8, 16, 32];
/// The least tile size along the summed axis of a `tl.dot` of 8-bit values.
const LEAST_TILE: i64 = 32;
/// Elements of the grid's tile per warp: with fewer, threads are idle; with more, values do not fit into registers.
const PER_WARP: std::ops::RangeInclusive<i64> = 32..=4096;
/// The maximum number of elements of all tiles together, which is Triton's own limit.
const ELEMENTS: i64 = 1 << 20;

/// The numbers of one configuration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfigNumbers {
    tiles: Vec<i64>,
    warps: i64,
}

/// The current configuration, and neighbours of it that may be faster for some sizes. `of_grid` are the tiles in which
/// programs are counted.
pub(super) fn neighbours(numbers: &LaunchNumbers<'_>, of_grid: Tiles, may_grow: Tiles) -> Vec<ConfigNumbers> {
    let tiles: Vec<i64> = numbers.tiles.iter().map(|tile| tile.value).collect();
    let present = ConfigNumbers { tiles, warps: numbers.warps.as_ref().map_or(WARPS, |warps| warps.value) };
    let elements = |setting: &ConfigNumbers, tiles: Tiles| {
        let of = setting.tiles.iter().enumerate().filter(|(at, _)| tiles & 1 << at != 0);
        of.fold(1_i64, |all, (_, tile)| all.saturating_mul(*tile))
    };
    let own = if of_grid == 0 { Tiles::MAX } else { of_grid };
    let is_fit = |setting: &ConfigNumbers| {
        let per_warp = elements(setting, own) / setting.warps.max(1);
        KNOWN_WARPS.contains(&setting.warps)
            && (setting.tiles.is_empty() || PER_WARP.contains(&per_warp))
            && elements(setting, Tiles::MAX) <= ELEMENTS.max(elements(&present, Tiles::MAX))
    };
    // A configuration that Triton refuses has no neighbours.
    if !KNOWN_WARPS.contains(&present.warps) {
        return Vec::new();
    }
    let mut all = vec![present.clone()];
    let mut add = |setting: ConfigNumbers| {
        if is_fit(&setting) && !all.contains(&setting) && all.len() < MOST {
            all.push(setting);
        }
    };
    let turned = |at: usize, tile: i64, warps: i64| {
        let mut setting = ConfigNumbers { warps, ..present.clone() };
        setting.tiles[at] = tile;
        setting
    };
    for (at, tile) in present.tiles.iter().enumerate().filter(|(at, _)| may_grow & 1 << at != 0) {
        let twice = turned(at, tile * 2, present.warps);
        // With more elements of a product per warp, registers would spill.
        let is_full = elements(&twice, own) / present.warps > *PER_WARP.end();
        add(if is_full { turned(at, tile * 2, present.warps * 2) } else { twice });
    }
    for (at, tile) in present.tiles.iter().enumerate().filter(|(_, tile)| **tile >= 2 * LEAST_TILE) {
        add(turned(at, tile / 2, present.warps));
    }
    for warps in [present.warps * 2, present.warps / 2] {
        add(ConfigNumbers { warps, ..present.clone() });
    }
    all
}

impl ConfigNumbers {
    /// `triton.Config({"B": 64}, num_warps=4)`
    pub(super) fn written(&self, triton: &str, numbers: &LaunchNumbers<'_>) -> String {
        let tiles = numbers.tiles.iter().zip(&self.tiles).map(|(tile, value)| format!("\"{}\": {value}", tile.name));
        let tiles = tiles.collect::<Vec<_>>().join(", ");
        let stages =
            numbers.stages.as_ref().map_or_else(String::new, |stages| format!(", num_stages={}", stages.value));
        format!("{triton}.Config({{{tiles}}}, num_warps={}{stages})", self.warps)
    }
}
