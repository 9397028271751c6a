//! The style of a kernel: names, imports and masks. The same computation is written in many ways.

use std::collections::BTreeMap;

use base::rng::Rng;

/// Import statements, with the names that they give to `triton.language` and `triton.jit`.
const HEADERS: &[(&str, &str, &str)] = &[
    ("import triton\nimport triton.language as tl\n", "tl", "triton.jit"),
    ("import triton\nfrom triton import language as tl\n", "tl", "triton.jit"),
    ("import triton\nimport triton.language as tl\nfrom triton import jit\n", "tl", "jit"),
    ("import triton\nimport triton.language as tlang\n", "tlang", "triton.jit"),
];

/// The names that each role may have.
const NAMES: &[(&str, &[&str])] = &[
    ("k", &["kernel", "fwd_kernel", "_fused", "compute", "run_kernel", "_impl"]),
    ("x", &["x_ptr", "X", "inp", "src", "a_ptr", "input_ptr"]),
    ("y", &["y_ptr", "Y", "second", "b_ptr", "other_ptr"]),
    ("w", &["w_ptr", "W", "weight", "gamma_ptr"]),
    ("z", &["out_ptr", "Z", "out", "dst", "c_ptr", "output_ptr"]),
    ("idx", &["idx_ptr", "IDX", "indices", "index_ptr"]),
    ("n", &["n", "n_elements", "N", "numel", "size", "n_cols"]),
    ("m", &["m", "M", "n_rows", "rows"]),
    ("s", &["stride", "row_stride", "ld", "stride_xm"]),
    ("eps", &["eps", "epsilon", "alpha", "scale"]),
    ("B", &["BLOCK", "BLOCK_SIZE", "BLOCK_N", "BN", "XBLOCK"]),
    ("A", &["BLOCK_M", "BM", "ROWS", "YBLOCK"]),
    ("K", &["BLOCK_K", "BK", "D", "HEAD_DIM"]),
    ("F", &["ACT", "MODE", "KIND", "FLAG"]),
    ("pid", &["pid", "row", "program", "pid_x", "i_n"]),
    ("pm", &["pid_m", "row_block", "i_m", "tile_id"]),
    ("o", &["offs", "offsets", "cols", "idx_n", "o_n"]),
    ("om", &["offs_m", "rows_idx", "rm", "o_m"]),
    ("ok", &["offs_k", "rk", "inner", "o_k"]),
    ("q", &["mask", "inside", "valid", "m_n", "keep"]),
    ("v", &["v", "x", "val", "vals", "data", "tile"]),
    ("u", &["u", "yv", "rhs", "b", "peer"]),
    ("g", &["g", "wv", "scale_v", "h"]),
    ("r", &["r", "result", "res", "y"]),
    ("acc", &["acc", "total", "accum", "summed"]),
    ("mx", &["mx", "row_max", "peak", "m_i"]),
    ("t", &["t", "tmp", "num", "e"]),
    ("i", &["i", "it", "start", "j", "step"]),
    ("f", &["helper", "_act", "combine", "_apply"]),
    ("fa", &["a", "lhs", "p"]),
    ("fb", &["bb", "second_arg", "qq"]),
];

/// One style.
#[derive(Clone, Debug)]
pub struct Style {
    names: BTreeMap<&'static str, String>,
    header: &'static str,
    /// The name of `triton.language`.
    pub language: &'static str,
    /// The decorator of kernels, without `@`.
    pub jit: &'static str,
}

impl Style {
    /// Draws a random style. No two roles have the same name.
    pub fn draw(chance: &mut Rng) -> Self {
        let (header, language, jit) = HEADERS[chance.below(HEADERS.len() as u64) as usize];
        let mut names = BTreeMap::new();
        let mut taken = Vec::new();
        for (role, choices) in NAMES {
            let free: Vec<&&str> = choices.iter().filter(|name| !taken.contains(*name)).collect();
            let name = free.get(chance.below(free.len() as u64) as usize).map_or(*role, |name| **name);
            taken.push(name);
            names.insert(*role, name.to_owned());
        }
        Self { names, header, language, jit }
    }

    /// The import statements.
    #[must_use]
    pub fn header(&self) -> &'static str {
        self.header
    }

    /// The name of a role.
    #[must_use]
    pub fn name(&self, role: &str) -> Option<&str> {
        match role {
            "tl" => Some(self.language),
            "jit" => Some(self.jit),
            _ => self.names.get(role).map(String::as_str),
        }
    }
}

/// `template` with each `$role` replaced by the result of `of`; `None` when `of` does not know a role.
pub(crate) fn filled(template: &str, mut of: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut parts = template.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        out.push_str(&of(&part[..end])?);
        out.push_str(&part[end..]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_gets_a_distinct_name() {
        for seed in 0..50 {
            let style = Style::draw(&mut Rng::new(seed));
            let mut names: Vec<&str> = style.names.values().map(String::as_str).collect();
            names.sort_unstable();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "seed {seed}");
        }
    }

    #[test]
    fn templates_are_filled() {
        let of = |role: &str| (role == "x").then(|| "ptr".to_owned());
        assert_eq!(filled("load($x + 1, $x)", of).as_deref(), Some("load(ptr + 1, ptr)"));
        assert_eq!(filled("$y", of), None);
    }
}
