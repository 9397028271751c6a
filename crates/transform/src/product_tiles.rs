//! Sets the tile sizes, warps and stages of a matrix product from a list that is known to keep tensor cores busy.

use base::rng::Rng;
use model::analysis::types::RuntimeValue;
use model::analysis::types::access::Product;
use model::analysis::types::shape::Dim;
use protocol::ArgumentValue;

use super::one_configuration::of_one;
use super::proposal::Proposal;
use super::skill::Skill;
use super::step::StepSize;
use super::subject::Subject;

/// The least numbers of rows and columns of a product with large matrices; an author who has written smaller tiles has
/// small matrices.
const FEW: i64 = 32;
/// The length in bytes of the lines in which shared memory is laid out and in which descriptors fetch.
const LINE: i64 = 128;

/// A proven combination of numbers.
struct Known {
    /// Rows and columns of a program's results.
    tile: [i64; 2],
    /// The number of lines of [`LINE`] bytes that an iteration takes of each row.
    lines: i64,
    warps: i64,
    stages: i64,
}

const fn known(tile: [i64; 2], lines: i64, warps: i64, stages: i64) -> Known {
    Known { tile, lines, warps, stages }
}

/// For large matrices: 64×64 results for each warp, and as many iterations in flight as shared memory holds.
const LARGE: [Known; 9] = [
    known([128, 256], 1, 8, 3),
    known([128, 256], 1, 8, 4),
    known([256, 128], 1, 8, 3),
    known([256, 128], 1, 8, 4),
    known([128, 128], 1, 4, 4),
    known([128, 128], 1, 8, 3),
    known([64, 256], 1, 4, 4),
    known([64, 128], 1, 4, 4),
    known([128, 64], 1, 4, 4),
];
/// For matrices with one short side, where memory is the limit: many bytes in flight. The short side stays.
const FLAT: [Known; 5] = [
    known([64, 64], 2, 4, 4),
    known([128, 128], 1, 4, 5),
    known([128, 128], 2, 4, 4),
    known([256, 256], 1, 8, 4),
    known([32, 32], 4, 4, 4),
];
/// For products whose summed size is fixed, as in attention.
const GIVEN: [Known; 7] = [
    known([128, 64], 1, 4, 3),
    known([128, 64], 1, 8, 3),
    known([128, 128], 1, 8, 3),
    known([128, 128], 1, 8, 2),
    known([64, 64], 1, 4, 3),
    known([64, 128], 1, 4, 3),
    known([64, 32], 1, 4, 4),
];

/// Sets the tile sizes of a product, its warps and its stages together, from a list of proven combinations: between
/// these and the author's numbers are many that are slower.
pub(super) struct ProductTiles;

impl Skill for ProductTiles {
    fn name(&self) -> &'static str {
        "product_tiles"
    }

    fn about(&self) -> &'static str {
        "Tile sizes, warps and stages of a product of matrices, all at once, from a list of those that go well together on tensor cores: 64×64 results for each warp, iterations over 128 bytes of each row, and as many pipeline stages as fit."
    }

    fn step(&self) -> StepSize {
        StepSize::Large
    }

    fn turns_numbers(&self) -> bool {
        true
    }

    fn turns(&self, subject: &Subject<'_>, _: &mut Rng) -> Vec<Proposal> {
        if !subject.has_product() {
            return Vec::new();
        }
        let mut turns = turns_of(subject);
        // For several configurations, the first step keeps any one of them.
        turns.extend(of_one(subject, turns_of));
        turns
    }
}

fn turns_of(subject: &Subject<'_>) -> Vec<Proposal> {
    let Some(sides) = Sides::of(subject) else { return Vec::new() };
    let present = subject.present();
    let mut settings = Vec::new();
    for known in sides.list(&present) {
        let setting = sides.setting(subject, known);
        settings.extend(setting.filter(|setting| *setting != present && !settings.contains(setting)));
    }
    settings.iter().map(|setting| subject.turn("product_tiles", setting)).collect()
}

/// The indices of the knobs that are the sizes of a product.
#[derive(Debug, PartialEq)]
struct Sides {
    rows: usize,
    columns: usize,
    /// The knob of the size that is summed in one iteration, if there is one.
    depth: Option<usize>,
}

impl Sides {
    /// The sizes of the first product whose result has two knobs as sizes.
    fn of(subject: &Subject<'_>) -> Option<Self> {
        let facts = subject.facts_of_any_launch()?;
        let products = &facts.products;
        let knob = |name: &str| subject.knobs.iter().position(|knob| knob.name == name);
        products.iter().filter(|product| !product.is_uncertain).find_map(|product| {
            let [rows, depth, columns] = names(product)?;
            // A summed size that is a side of another product's result must not change freely.
            let is_side =
                |other: &Product| names(other).is_some_and(|[rows, _, columns]| [rows, columns].contains(&depth));
            let depth = knob(&depth).filter(|_| !products.iter().any(is_side));
            Some(Self { rows: knob(&rows)?, columns: knob(&columns)?, depth })
                .filter(|sides| sides.rows != sides.columns)
        })
    }

    fn list(&self, present: &[i64]) -> &'static [Known] {
        match self.depth {
            None => &GIVEN,
            Some(_) if present[self.rows].min(present[self.columns]) <= FEW => &FLAT,
            Some(_) => &LARGE,
        }
    }

    /// The knobs' values for a combination; `None` where a knob does not have one of the values.
    fn setting(&self, subject: &Subject<'_>, known: &Known) -> Option<Vec<i64>> {
        let mut setting = subject.present();
        let is_flat = self.depth.is_some() && setting[self.rows].min(setting[self.columns]) <= FEW;
        let mut put = |at: Option<usize>, value: i64| {
            let Some(at) = at else { return Some(()) };
            setting[at] = Some(value).filter(|value| subject.knobs[at].choices.contains(value))?;
            Some(())
        };
        let option = |name: &str| subject.knobs.iter().position(|knob| knob.name == name);
        let is_kept = |side: usize| is_flat && subject.knobs[side].current <= FEW;
        for (side, size) in [(self.rows, known.tile[0]), (self.columns, known.tile[1])] {
            put(Some(side).filter(|&side| !is_kept(side)), size)?;
        }
        put(self.depth, known.lines * LINE / bytes(subject))?;
        put(option("num_warps"), known.warps)?;
        put(option("num_stages"), known.stages)?;
        Some(setting)
    }
}

/// The names of rows, depth and columns, each a parameter.
fn names(product: &Product) -> Option<[String; 3]> {
    let size = |tile: &RuntimeValue, axis: usize| match tile.shape.as_ref()?.get(axis)? {
        Dim::Symbol(symbol) if symbol.factor == 1 && symbol.names.len() == 1 => Some(symbol.names[0].to_string()),
        _ => None,
    };
    let [left, right] = &product.operands;
    Some([size(left, 0)?, size(left, 1)?, size(right, 1)?])
}

/// The bytes per element of the factors: those of the shortest float type that the launch passes, else of the shortest
/// integer type, else 2.
fn bytes(subject: &Subject<'_>) -> i64 {
    let launches = subject.records();
    let pointed = launches.flat_map(|launch| &launch.arguments).filter_map(|(_, value)| match value {
        ArgumentValue::Pointer(dtype) => Some(dtype.as_str()),
        _ => None,
    });
    let (floats, others): (Vec<&str>, Vec<&str>) = pointed.partition(|dtype| dtype.contains("float"));
    let shortest = |all: &[&str]| all.iter().filter_map(|dtype| bits(dtype)).min();
    shortest(&floats).or_else(|| shortest(&others)).map_or(2, |bits| (bits / 8).clamp(1, 4))
}

/// The number of bits in a dtype's name: `bfloat16` has 16, `float8_e4m3fn` has 8.
fn bits(dtype: &str) -> Option<i64> {
    let digits = dtype.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests;
