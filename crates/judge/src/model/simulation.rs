//! Tracing of one program of a kernel: integers, addresses and masks are evaluated without any tensor data, and its
//! loads, stores and operations are counted.

use std::collections::HashMap;

use super::simulated_value::SimulatedValue;
use super::ttir::{BasicBlock, Op, Region, TtirFunction, Type, ValueId};
use super::work::Work;

/// Bytes of a memory sector, the smallest unit that is transferred.
const SECTOR: i64 = 32;
/// The bit at which the number of a pointer parameter begins in an address, so that each parameter has addresses of its
/// own.
const APART: u32 = 44;
/// Loops with more rounds than this are not traced completely if their rounds are alike.
const ROUNDS: i64 = 6;
/// The most rounds that are traced of a loop whose rounds differ.
const MOST_ROUNDS: i64 = 2048;
/// The number of operations after which tracing a program stops.
const MOST_OPERATIONS: usize = 400_000;
/// Operations on this many elements count twice.
const LANES: usize = 256;

/// The argument for a kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LaunchArgument {
    Int(i64),
    /// A pointer, given by its offset from its allocation in bytes.
    Pointer(i64),
    Other,
}

/// The position of a program in its grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramPosition {
    pub(super) program: [i64; 3],
    pub(super) grid: [i64; 3],
}

/// The work of one program; `None` where too much of it is not understood.
pub(super) fn work(
    functions: &[TtirFunction],
    kernel: &str,
    arguments: &[LaunchArgument],
    place: ProgramPosition,
) -> Option<Work> {
    let kernel = functions.iter().find(|function| function.name == kernel)?;
    let given = kernel.parameters.iter().zip(arguments).enumerate().map(|(at, ((_, of), argument))| match argument {
        LaunchArgument::Int(value) => SimulatedValue::scalar(*value),
        LaunchArgument::Pointer(offset) => SimulatedValue::scalar((at as i64 + 1) << APART | offset),
        LaunchArgument::Other => SimulatedValue::unknown(&of.shape),
    });
    let mut machine = Machine { functions, place, work: Work::default(), operations: 0, depth: 0 };
    machine.call(kernel, &given.collect::<Vec<_>>());
    machine.work.close();
    (machine.operations < MOST_OPERATIONS).then_some(machine.work)
}

struct Machine<'a> {
    functions: &'a [TtirFunction],
    place: ProgramPosition,
    work: Work,
    operations: usize,
    depth: usize,
}

/// Values by their names.
type Values = Vec<SimulatedValue>;

/// The successor of a block.
enum End {
    /// The end of its region, with the region's values.
    Yields(Vec<SimulatedValue>),
    /// Another block of the function, with arguments.
    Goes(String, Vec<SimulatedValue>),
}

impl Machine<'_> {
    fn call(&mut self, function: &TtirFunction, given: &[SimulatedValue]) -> Vec<SimulatedValue> {
        let mut values = vec![SimulatedValue::default(); function.values];
        function.parameters.iter().zip(given).for_each(|((name, _), value)| values[*name] = value.clone());
        self.depth += 1;
        let out = self.region(&function.body, Vec::new(), &mut values);
        self.depth -= 1;
        out
    }

    fn region(&mut self, region: &Region, given: Vec<SimulatedValue>, values: &mut Values) -> Vec<SimulatedValue> {
        let Some(mut block) = region.first() else { return Vec::new() };
        let mut given = given;
        // Kernels have no loops between blocks in this form, so each block runs at most once.
        for _ in 0..=region.len() {
            block.arguments.iter().zip(given).for_each(|(name, value)| values[*name] = value);
            match self.block(block, values) {
                End::Yields(out) => return out,
                End::Goes(label, with) => {
                    let Some(next) = region.iter().find(|block| block.label == label) else { return Vec::new() };
                    (block, given) = (next, with);
                }
            }
        }
        Vec::new()
    }

    fn block(&mut self, block: &BasicBlock, values: &mut Values) -> End {
        for op in &block.ops {
            self.operations += 1 + op.types.first().map_or(0, Type::elements) / LANES;
            if self.operations >= MOST_OPERATIONS {
                break;
            }
            let of = |name: &ValueId| values[*name].clone();
            match op.name.as_str() {
                "scf.yield" | "tt.return" | "tt.reduce.return" | "tt.scan.return" | "scf.condition" => {
                    return End::Yields(op.operands.iter().map(of).collect());
                }
                "cf.br" => return End::Goes(labels(&op.text).remove(0), op.operands.iter().map(of).collect()),
                "cf.cond_br" => return self.branch(op, values),
                _ => {}
            }
            let made = self.made(op, values);
            op.results.iter().zip(made).for_each(|(name, value)| values[*name] = value);
        }
        End::Yields(Vec::new())
    }

    /// The block that a branch leads to. An unknown condition continues, since a program that returns early has little
    /// work.
    fn branch(&mut self, op: &Op, values: &Values) -> End {
        let holds = op.operands.first().and_then(|name| values[*name].value()) == Some(1);
        let mut labels = labels(&op.text);
        let label = if labels.len() > 1 { labels.swap_remove(usize::from(!holds)) } else { String::new() };
        // For example `%c, ^bb1(%a : i32), ^bb2(%b : i32)`.
        let first = op.text.split('^').nth(1).map_or(0, |first| first.matches('%').count());
        let of = |name: &ValueId| values[*name].clone();
        let given = op.operands.iter().skip(1);
        let given = if holds { given.take(first).map(of).collect() } else { given.skip(first).map(of).collect() };
        End::Goes(label, given)
    }

    fn made(&mut self, op: &Op, values: &mut Values) -> Vec<SimulatedValue> {
        match op.name.as_str() {
            "scf.for" => return self.counted(op, values),
            "scf.while" => return self.repeated(op, values),
            "scf.if" => {
                let holds = op.operands.first().and_then(|name| values[*name].value()) != Some(0);
                let Some(region) = op.regions.get(usize::from(!holds)) else { return Vec::new() };
                return self.region(region, Vec::new(), values);
            }
            "tt.call" => {
                let name = op.text.trim().trim_start_matches('@').split('(').next().unwrap_or_default();
                let given: Vec<SimulatedValue> = op.operands.iter().map(|name| values[*name].clone()).collect();
                let called = self.functions.iter().find(|function| function.name == name).filter(|_| self.depth < 8);
                return called.map_or_else(|| unknown(&op.types), |function| self.call(function, &given));
            }
            _ => {}
        }
        let operands: Vec<&SimulatedValue> = op.operands.iter().map(|name| &values[*name]).collect();
        self.count(op, &operands);
        match super::arithmetic::value(op, &operands, &self.place) {
            Some(value) => vec![value],
            None => unknown(&op.types),
        }
    }

    /// Traces a loop with a counter. A few of the rounds that are alike are traced and counted for the others.
    fn counted(&mut self, op: &Op, values: &mut Values) -> Vec<SimulatedValue> {
        let [counter, low, high, step, rest @ ..] = op.operands.as_slice() else { return unknown(&op.types) };
        let Some(body) = op.regions.first() else { return unknown(&op.types) };
        let (names, mut state) = carried(rest, values);
        let [low, high, step] = [low, high, step].map(|name| values[*name].value());
        let (low, step) = (low.unwrap_or(0), step.unwrap_or(1).max(1));
        // One round is traced of a loop whose bounds depend on data.
        let rounds = (high.unwrap_or(low + step) - low + step - 1).div_euclid(step).max(0);
        self.work.new_round();
        let mut before: Vec<Vec<SimulatedValue>> = Vec::new();
        let (mut done, mut seen, mut last) = (0, 0, Work::default());
        while done < rounds {
            let since = self.work.clone();
            values[*counter] = SimulatedValue::scalar(low + done * step);
            names.iter().zip(&state).for_each(|(name, value)| values[*name] = value.clone());
            before.push(std::mem::replace(&mut state, self.region(body, Vec::new(), values)));
            self.work.new_round();
            let one = self.work.since(&since);
            (done, seen) = (done + 1, seen + 1);
            if seen == 3 && rounds > ROUNDS {
                let skipped = rounds - ROUNDS;
                let is_even = state.iter().zip(&before[2]).zip(&before[1]).all(|((a, b), c)| a.is_even(b, c));
                if is_even && one.is_like(&last) {
                    let newest = before[2].clone();
                    state = state.iter().zip(&newest).map(|(now, before)| now.later(before, skipped)).collect();
                    self.work.add(&one, skipped as f64);
                    done += skipped;
                }
            }
            let is_long = seen >= MOST_ROUNDS || self.operations >= MOST_OPERATIONS / 2;
            if is_long && rounds > done {
                self.work.add(&one, (rounds - done) as f64);
                break;
            }
            before.drain(..before.len().saturating_sub(3));
            last = one;
        }
        state
    }

    fn repeated(&mut self, op: &Op, values: &mut Values) -> Vec<SimulatedValue> {
        let (names, mut state) = carried(&op.operands, values);
        let [before, after] = op.regions.as_slice() else { return unknown(&op.types) };
        for round in 0..MOST_ROUNDS {
            names.iter().zip(&state).for_each(|(name, value)| values[*name] = value.clone());
            let mut said = self.region(before, Vec::new(), values);
            if said.is_empty() {
                break;
            }
            let goes_on = said.remove(0).value();
            // One round is traced of a loop whose condition depends on data.
            if goes_on.map_or(round > 0, |goes_on| goes_on == 0) {
                return said;
            }
            self.work.new_round();
            state = self.region(after, said, values);
        }
        state
    }

    /// Adds the cost of an operation.
    fn count(&mut self, op: &Op, operands: &[&SimulatedValue]) {
        let bits = |at: usize| op.types.get(at).map_or(32, |of| of.bits);
        match op.name.as_str() {
            "tt.load" => {
                let mask = operands.get(1).copied();
                let bytes = i64::from(bits(0).div_ceil(8));
                if let Some(&pointers) = operands.first() {
                    let touched = touched(pointers, mask, bytes);
                    self.work.load(&touched);
                }
            }
            "tt.store" => {
                let (pointers, mask) = (operands.first().copied(), operands.get(2).copied());
                let bytes = i64::from(bits(0).div_ceil(8));
                if let Some(pointers) = pointers {
                    let touched = touched(pointers, mask, bytes);
                    self.work.store(&touched, 1.0);
                }
            }
            "tt.atomic_rmw" | "tt.atomic_cas" => {
                let bytes = i64::from(bits(0).div_ceil(8));
                if let Some(&pointers) = operands.first() {
                    let touched = touched(pointers, operands.get(2).copied(), bytes);
                    // The L2 cache reads, adds and writes.
                    self.work.store(&touched, 2.0);
                }
            }
            "tt.descriptor_load" | "tt.experimental_descriptor_load" => {
                let bytes = op.types.first().map_or(0, |of| of.elements() * of.bits as usize / 8);
                self.work.load(&whole(bytes, operands));
            }
            "tt.descriptor_store" | "tt.experimental_descriptor_store" => {
                let bytes = op.types.first().map_or(0, |of| of.elements() * of.bits as usize / 8);
                self.work.store(&whole(bytes, operands), 1.0);
            }
            "tt.dot" | "tt.dot_scaled" => self.product(op, operands),
            "tt.reduce" | "tt.scan" => {
                let elements: usize = operands.iter().map(|tile| tile.len()).sum();
                let times = if op.name == "tt.scan" { 4.0 } else { 1.5 };
                self.work.simple += elements as f64 * times;
                self.work.floats += elements as f64;
                self.work.exchanges += 1.0;
                self.work.new_round();
            }
            name => {
                let elements = op.types.first().map_or(0, Type::elements);
                // Scalars are computed once for all lanes.
                if !op.types.first().is_none_or(|of| of.shape.is_empty()) {
                    let (simple, special) = price(name);
                    self.work.simple += simple * elements as f64;
                    self.work.special += special * elements as f64;
                    self.work.floats += if computes_floats(name) { elements as f64 } else { 0.0 };
                }
            }
        }
    }

    fn product(&mut self, op: &Op, operands: &[&SimulatedValue]) {
        let [a, b, ..] = operands else { return };
        let (Some(&inner), Some(&columns)) = (a.shape.last(), b.shape.last()) else { return };
        let rows: usize = a.shape[..a.shape.len().saturating_sub(1)].iter().product();
        // For example `tensor<64x32xbf16> * tensor<32x64xbf16> -> …`.
        let of = op.text.split(" : ").last().unwrap_or_default();
        let bits = super::ttir::first_type(of).map_or(16, |of| of.bits);
        let is_exact = op.text.contains("inputPrecision = ieee");
        self.work.multiply((rows * inner * columns) as f64, bits, is_exact);
        self.work.rows_of_product = self.work.rows_of_product.max(rows.min(columns) as f64);
        self.work.new_round();
    }
}

/// The values that a loop carries, with their initial values: `%a = %start, …`
fn carried(operands: &[ValueId], values: &Values) -> (Vec<ValueId>, Vec<SimulatedValue>) {
    let pairs = operands.as_chunks::<2>().0.iter();
    pairs.map(|&[name, start]| (name, values[start].clone())).unzip()
}

fn unknown(types: &[Type]) -> Vec<SimulatedValue> {
    types.iter().map(|of| SimulatedValue::unknown(&of.shape)).collect()
}

fn labels(text: &str) -> Vec<String> {
    let end = |rest: &str| rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let mut labels: Vec<String> = text.split('^').skip(1).map(|rest| rest[..end(rest)].to_owned()).collect();
    if labels.is_empty() {
        labels.push(String::new());
    }
    labels
}

/// The memory that an access touches: sectors per pointer parameter, and the bytes that were requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AccessSectors {
    /// Bytes of the sectors, by the index of the parameter; [`UNKNOWN`] is an unknown one.
    pub(super) bytes: HashMap<usize, f64>,
    /// The first and last address of the sectors, by the index of the parameter.
    pub(super) reach: HashMap<usize, (i64, i64)>,
}

/// The index of an unknown parameter.
pub(super) const UNKNOWN: usize = usize::MAX;

fn touched(pointers: &SimulatedValue, mask: Option<&SimulatedValue>, bytes: i64) -> AccessSectors {
    let mut found = AccessSectors::default();
    let Some(addresses) = &pointers.elements else {
        // The addresses are unknown: each element counts alone, unless the elements are contiguous.
        let all = pointers.len().max(1) as f64 * bytes as f64;
        found.bytes.insert(UNKNOWN, all.max(SECTOR as f64));
        return found;
    };
    let known = mask.and_then(|mask| mask.elements.as_ref()).filter(|mask| mask.len() == addresses.len());
    let mut sectors = Vec::new();
    for (at, address) in addresses.iter().enumerate() {
        if known.is_some_and(|mask| mask[at] == 0) {
            continue;
        }
        let (first, last) = (address.div_euclid(SECTOR), (address + bytes - 1).div_euclid(SECTOR));
        for sector in first..=last {
            if sectors.last() != Some(&sector) {
                sectors.push(sector);
            }
        }
    }
    sectors.sort_unstable();
    sectors.dedup();
    for sector in sectors {
        let (start, end) = (sector * SECTOR, (sector + 1) * SECTOR);
        let parameter = usize::try_from(start >> APART).ok().and_then(|at| at.checked_sub(1)).unwrap_or(UNKNOWN);
        *found.bytes.entry(parameter).or_default() += SECTOR as f64;
        // The sectors are sorted.
        found.reach.entry(parameter).or_insert((start, end)).1 = end;
    }
    found
}

/// A block that is accessed through a tensor descriptor. Its parameter is known if the descriptor was made from a
/// pointer parameter.
fn whole(bytes: usize, operands: &[&SimulatedValue]) -> AccessSectors {
    let address = operands.first().and_then(|tile| tile.value());
    let parameter = address.and_then(|address| usize::try_from(address >> APART).ok()?.checked_sub(1));
    let bytes = HashMap::from([(parameter.unwrap_or(UNKNOWN), bytes as f64)]);
    AccessSectors { bytes, ..AccessSectors::default() }
}

fn computes_floats(name: &str) -> bool {
    const ARITHMETIC: &[&str] =
        &["addf", "subf", "mulf", "divf", "remf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf"];
    name.strip_prefix("arith.").is_some_and(|name| ARITHMETIC.contains(&name))
        || name.starts_with("math.")
        || name.starts_with("tt.precise_")
        || name == "tt.extern_elementwise"
        || name == "tt.clampf"
}

/// Instructions per element: of the ordinary lanes, and of the special function lanes.
fn price(name: &str) -> (f64, f64) {
    match name {
        "arith.constant" | "tt.splat" | "tt.broadcast" | "tt.expand_dims" | "tt.make_range" | "tt.reshape" => {
            (0.0, 0.0)
        }
        "tt.trans" | "ub.poison" | "tt.bitcast" | "arith.bitcast" | "tt.make_tensor_descriptor" => (0.0, 0.0),
        "tt.join" | "tt.split" | "tt.cat" | "arith.index_cast" => (0.5, 0.0),
        "tt.addptr" => (2.0, 0.0),
        "arith.divsi" | "arith.divui" | "arith.remsi" | "arith.remui" => (20.0, 1.0),
        "arith.divf" => (6.0, 1.0),
        "math.sqrt" | "math.rsqrt" | "tt.precise_sqrt" => (4.0, 1.0),
        "tt.precise_divf" => (10.0, 1.0),
        "math.exp" | "math.log" => (2.0, 1.0),
        "math.exp2" | "math.log2" => (1.0, 1.0),
        "math.sin" | "math.cos" | "math.erf" | "math.tanh" | "tt.extern_elementwise" => (20.0, 1.0),
        _ if name.starts_with("math.") => (2.0, 1.0),
        // Conversions run at a quarter of the rate.
        "arith.sitofp" | "arith.uitofp" | "arith.fptosi" | "arith.fptoui" | "tt.fp_to_fp" => (4.0, 0.0),
        "arith.extf" | "arith.truncf" => (1.0, 0.0),
        _ => (1.0, 0.0),
    }
}
