//! Tests of recorded replies of both operators for the test kernels, and of the built-in skills on these kernels.

use std::path::Path;

use base::rng::Rng;
use model::syntax::Source;
use rules::apply_edits;
use transform::candidate::Candidate;
use transform::{SKILLS, Subject};
use workload::workloads_of_comments;

use super::super::reply::{diagnosis, small_step, whole_file};
use super::super::screen::{Objection, screen};

/// The kernels, and the function that is called of each.
const KERNELS: [(&str, &str); 10] = [
    ("add_rms_norm", "add_rms_norm"),
    ("column_sum", "column_sum"),
    ("dequant_matmul", "int8_linear"),
    ("gated_mlp_activation", "swiglu"),
    ("gelu_bias", "gelu_bias"),
    ("layer_norm", "layer_norm"),
    ("matmul", "matmul"),
    ("rotary", "apply_rotary"),
    ("softmax_wide", "wide_softmax"),
    ("vector_add_relu", "add_relu"),
];

#[test]
fn recorded_replies_for_ten_kernels_become_valid_candidates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let read =
        |path: String| std::fs::read_to_string(root.join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    for (name, entry) in KERNELS {
        let source = read(format!("gpu/optimize/{name}.py"));
        let (small, large) = (read(format!("replies/{name}.small.txt")), read(format!("replies/{name}.large.txt")));
        let edited = small_step(&small, &source).unwrap_or_else(|error| panic!("{name}: {error}"));
        let written = whole_file(&large, &[entry]).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (reply, made) in [(&small, &edited), (&large, &written)] {
            assert_ne!(made, &source, "{name}");
            assert!(!Source::parse(made.as_str()).has_error(), "{name}");
            let refusing: Vec<Objection> = screen(&source, made).into_iter().filter(|one| one.refuses).collect();
            assert_eq!(refusing, [], "{name}");
            assert!(diagnosis(reply).is_some_and(|said| said.len() > 20), "{name}");
        }
    }
}

#[test]
fn the_screen_accepts_all_proposals_of_skills() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/gpu/optimize");
    let mut made = 0;
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let original = Candidate::original(&text);
        let workload = workloads_of_comments(&path, &text).unwrap().remove(0);
        for kernel in &original.module.kernels {
            let Some(subject) = Subject::new(&original, &text, &kernel.name, &workload) else { continue };
            for turn in SKILLS.iter().flat_map(|skill| skill.turns(&subject, &mut Rng::new(1))) {
                let objections = screen(&text, &apply_edits(&text, &turn.edits));
                let refusing: Vec<&Objection> = objections.iter().filter(|one| one.refuses).collect();
                assert!(refusing.is_empty(), "{}, {}: {refusing:?}", path.display(), turn.kind);
                made += 1;
            }
        }
    }
    assert!(made > 100, "{made}");
}
