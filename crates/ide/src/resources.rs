//! Text for the resources of a kernel: registers, spills, shared memory, occupancy.

use std::fmt::Write as _;

use model::analysis::resources::{CompilationResult, CompiledVariant, Resources};
use model::kernel::{Kernel, Module};

/// The number of rows that are shown at most.
const ROWS: usize = 12;

/// Whether resources are shown for a kernel: not where it has errors, or where other kernels call it.
#[must_use]
pub fn is_reported(module: &Module, kernel: &Kernel) -> bool {
    !kernel.has_error
        && module.kernel(&kernel.name).is_some()
        && !module.called_in_kernels().contains(kernel.name.as_str())
}

/// A summary in one line: `sm_90: 190 registers, no spills, 48 KiB shared, occupancy 12.5 % (registers)`.
#[must_use]
pub fn headline(resources: &Resources) -> String {
    let caveat = resources.caveat().map_or_else(String::new, |caveat| format!(" ({caveat})"));
    let device = &resources.device;
    match resources.rows.as_slice() {
        [] => format!("{device}: resources unknown{caveat}"),
        [row] => format!("{device}: {}{caveat}", resources.describe(row)),
        rows => format!("{device}: {}{caveat}", several(resources, rows)),
    }
}

/// A summary of several rows: `12 configs: occupancy 12.5–50 %, 1 with spills, 2 out of resources`.
fn several(resources: &Resources, rows: &[CompiledVariant]) -> String {
    let is_tuned = rows.iter().any(|row| row.config.is_some());
    let more = if resources.left_out > 0 { "+" } else { "" };
    let mut out = format!("{}{more} {}", rows.len(), if is_tuned { "configs" } else { "variants" });
    let mut parts = Vec::new();
    let percents: Vec<f64> =
        rows.iter().filter_map(|row| resources.occupancy(row)).map(|occupancy| occupancy.percent()).collect();
    if let (Some(least), Some(most)) =
        (percents.iter().copied().reduce(f64::min), percents.iter().copied().reduce(f64::max))
    {
        let range = if percents.iter().all(|percent| percent.to_bits() == least.to_bits()) {
            least.to_string()
        } else {
            format!("{least}\u{2013}{most}")
        };
        parts.push(format!("occupancy {range} %"));
    }
    let lacking = rows.iter().filter(|row| resources.missing_resource(row).is_some()).count();
    let spills = |row: &&CompiledVariant| matches!(&row.outcome, CompilationResult::Compiled(taken) if taken.spills.is_some_and(|spills| spills > 0));
    let refused = |row: &&CompiledVariant| matches!(row.outcome, CompilationResult::Refused(_));
    for (count, what) in [
        (rows.iter().filter(spills).count(), "with spills"),
        (lacking, "out of resources"),
        (rows.iter().filter(refused).count(), "that do not compile"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if !parts.is_empty() {
        let _ = write!(out, ": {}", parts.join(", "));
    }
    out
}

/// The rows as pairs of text: the setting that distinguishes a row, and its outcome.
#[must_use]
pub fn rows(resources: &Resources) -> Vec<(String, String)> {
    resources.rows.iter().map(|row| (row.setting.clone(), resources.describe(row))).collect()
}

/// A summary in a few lines, for a message.
#[must_use]
pub fn message(kernel: &str, resources: &Resources) -> String {
    let mut out = format!("`{kernel}` on {}", headline(resources));
    if resources.rows.len() > 1 {
        for (setting, words) in rows(resources).iter().take(ROWS) {
            let _ = write!(out, "\n{setting}: {words}");
        }
        out.push_str(&rest(resources));
    }
    out
}

fn rest(resources: &Resources) -> String {
    match resources.rows.len().saturating_sub(ROWS) + resources.left_out {
        0 => String::new(),
        more => format!("\nand {more} more"),
    }
}

/// A table in Markdown.
#[must_use]
pub fn table(resources: &Resources) -> String {
    let caveat = resources.caveat().map_or_else(String::new, |caveat| format!(", {caveat}"));
    let mut out = format!("Compiled for {}{caveat}:\n\n", resources.device);
    out.push_str("| | registers | spills | shared | occupancy |\n|---|--:|--:|--:|---|\n");
    for row in resources.rows.iter().take(ROWS) {
        let setting = if row.setting.is_empty() { String::new() } else { format!("`{}`", row.setting) };
        let CompilationResult::Compiled(taken) = &row.outcome else {
            let _ = writeln!(out, "| {setting} | | | | {} |", resources.describe(row).replace('|', "\\|"));
            continue;
        };
        let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
        let (registers, spills, shared) = (number(taken.registers), number(taken.spills), taken.shared);
        let last = match (resources.missing_resource(row), resources.occupancy(row)) {
            (Some(lack), _) => lack,
            (None, Some(occupancy)) => occupancy.to_string().trim_start_matches("occupancy ").to_owned(),
            (None, None) => String::new(),
        };
        let _ = writeln!(out, "| {setting} | {registers} | {spills} | {shared} | {last} |");
    }
    out.push_str(&rest(resources));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::analysis::occupancy::MultiprocessorLimits;
    use model::analysis::resources::{KernelResources, LaunchCertainty};

    fn row(setting: &str, registers: u32, shared: u32) -> CompiledVariant {
        let taken =
            KernelResources { registers: Some(registers), spills: Some(0), stack: Some(0), shared, warps: 4, ctas: 1 };
        let (setting, outcome) = (setting.to_owned(), CompilationResult::Compiled(taken));
        CompiledVariant { config: Some(0), setting, certainty: LaunchCertainty::Certain, outcome }
    }

    fn resources(rows: Vec<CompiledVariant>) -> Resources {
        Resources { device: "sm_90".to_owned(), limits: MultiprocessorLimits::of(90), rows, left_out: 0 }
    }

    #[test]
    fn a_single_variant_is_described_in_full() {
        let mut one = resources(vec![row("", 190, 49_152)]);
        assert_eq!(headline(&one), "sm_90: 190 registers, no spills, 48 KiB shared, occupancy 12.5 % (registers)");
        one.rows[0].certainty = LaunchCertainty::Guessed;
        assert!(headline(&one).ends_with("(registers) (parameters guessed)"));
        one.rows[0].certainty = LaunchCertainty::Possible;
        assert!(headline(&one).ends_with("(registers)"), "of a tuner, options are known");
        one.rows[0].config = None;
        assert!(headline(&one).ends_with("(registers) (launch options assumed)"));
    }

    #[test]
    fn several_variants_are_summarized() {
        let refused = CompiledVariant { outcome: CompilationResult::Refused("no".to_owned()), ..row("B=3", 1, 1) };
        let mut many = resources(vec![row("B=1", 190, 49_152), row("B=2", 32, 1024), row("B=4", 32, 300_000), refused]);
        assert_eq!(
            headline(&many),
            "sm_90: 4 configs: occupancy 12.5\u{2013}100 %, 1 out of resources, 1 that do not compile"
        );
        assert_eq!(message("k", &many).lines().last().unwrap(), "B=3: does not compile: no");
        many.left_out = 3;
        assert!(message("k", &many).ends_with("\nand 3 more"));
        let table = table(&many);
        assert!(table.contains("| `B=1` | 190 | 0 | 49152 | 12.5 % (registers) |"), "{table}");
        assert!(table.contains("| `B=4` | 32 | 0 | 300000 | needs 300,000 bytes"), "{table}");
        assert!(table.contains("| `B=3` | | | | does not compile: no |"), "{table}");
    }
}
