//! Twins: candidates with the same machine code and the same launches. They take equally long, so the search does not
//! run them twice.
//!
//! The host code beside the launches may differ, so a candidate is never offered by the measurement of its twin.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use protocol::Workload;

use super::locks::lock;
use super::verdict::Measured;

/// The measurements of candidates that were correct, by machine code.
#[derive(Default)]
pub(super) struct MachineCodeCache {
    /// The identity of the call.
    call: String,
    known: Mutex<HashMap<String, Measured>>,
}

impl MachineCodeCache {
    /// The twins of a workload's call. Calls with the same arguments may still differ, for example when gradients are
    /// computed.
    pub(super) fn of(workload: &Workload) -> Self {
        let call = Workload { file: PathBuf::new(), ..workload.clone() };
        let call = blake3::hash(&serde_json::to_vec(&call).unwrap_or_default()).to_hex()[..16].to_owned();
        Self { call, known: Mutex::default() }
    }

    /// The key of machine code in this call, which is the same in every process and on every machine.
    pub(super) fn name(&self, code: &str) -> String {
        format!("{} {code}", self.call)
    }

    /// The measurement of a candidate with this code.
    pub(super) fn find(&self, code: &str) -> Option<Measured> {
        let known = lock(&self.known).get(code).cloned()?;
        Some(Measured { same_code: true, ..known })
    }

    /// Keeps the measurement of a candidate with this code.
    pub(super) fn keep(&self, code: String, measured: &Measured) {
        lock(&self.known).entry(code).or_insert_with(|| measured.clone());
    }

    /// Keeps the measurements of other judges.
    pub(super) fn learn(&self, known: &[Measured]) {
        for measured in known {
            if let Some(code) = &measured.code {
                self.keep(code.clone(), measured);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::JudgedOn;
    use super::*;
    use protocol::ArgumentValue;

    #[test]
    fn a_measurement_of_a_twin_is_marked_as_such() {
        let (twins, of) = (MachineCodeCache::default(), |milliseconds| Measured {
            pairs: vec![(1.0, milliseconds)],
            ..Measured::default()
        });
        assert_eq!(twins.find("a"), None);
        twins.keep("a".to_owned(), &of(0.5));
        // The first measurement is kept.
        twins.keep("a".to_owned(), &of(0.6));
        assert_eq!(twins.find("a"), Some(Measured { same_code: true, ..of(0.5) }));
        assert_eq!(twins.find("b"), None);
    }

    #[test]
    fn measurements_of_other_judges_are_kept_by_machine_code() {
        let twins = MachineCodeCache::default();
        let there = JudgedOn { gpu: "H900".to_owned(), node: "there".to_owned(), number: "1".to_owned() };
        let of = |code: Option<&str>| Measured { code: code.map(str::to_owned), ..Measured::default() };
        twins.learn(&[Measured { judged_on: Some(there.clone()), ..of(Some("a")) }, of(None)]);
        assert_eq!(twins.find("a").map(|twin| (twin.same_code, twin.judged_on)), Some((true, Some(there))));
    }

    #[test]
    fn the_key_depends_on_machine_code_and_call() {
        let call =
            |size: i64| Workload { entry: "f".to_owned(), args: vec![ArgumentValue::Int(size)], ..Workload::default() };
        let elsewhere = Workload { file: "/elsewhere/k.py".into(), ..call(1) };
        let name = |workload: &Workload, code: &str| MachineCodeCache::of(workload).name(code);
        assert_eq!(name(&call(1), "code"), name(&elsewhere, "code"));
        assert_ne!(name(&call(1), "code"), name(&call(2), "code"));
        assert_ne!(name(&call(1), "code"), name(&call(1), "other"));
        let with_gradients = Workload { gradients: true, ..call(1) };
        assert_ne!(name(&call(1), "code"), name(&with_gradients, "code"));
    }
}
