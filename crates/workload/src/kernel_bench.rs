//! Files in the format of `KernelBench`: a class `Model`, and functions that create its inputs.

use std::path::Path;

use protocol::{Workload, WorkloadSource};

/// The call of the model in such a file, whose own functions create the arguments; `None` for other files.
pub(super) fn workload(file: &Path, text: &str) -> Option<Workload> {
    let defines = |what: &str| {
        let names = |line: &str| line.strip_prefix(what).is_some_and(|rest| rest.trim_start().starts_with(['(', ':']));
        text.lines().any(names)
    };
    let is_one = defines("class Model") && defines("def get_inputs") && defines("def get_init_inputs");
    is_one.then(|| Workload {
        source: WorkloadSource::KernelBench,
        file: file.to_owned(),
        entry: "Model.forward".to_owned(),
        count: 1,
        ..Workload::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernelbench_file_needs_model_and_both_input_functions() {
        let whole = "class Model(nn.Module):\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n";
        let of = |text: &str| workload(Path::new("/f.py"), text);
        let found = of(whole).unwrap();
        assert_eq!((found.entry.as_str(), found.source), ("Model.forward", WorkloadSource::KernelBench));
        assert_eq!(of(&whole.replace("get_init_inputs", "get_init")), None);
        assert_eq!(of(&whole.replace("class Model(", "class ModelNew(")), None);
    }
}
