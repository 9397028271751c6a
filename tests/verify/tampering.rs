//! Tests of candidates that change what the judge relies on without replacing a name, or look for the judge's objects.

use crate::judging::{Edit, Project, Report, SCALE};
use crate::{FASTER, RETURN, TOP};

/// Statements of a candidate: a name, words of the evidence, and the statements. Those of `AT_LOAD` stand at the top, the
/// others in the call.
const AT_LOAD: &[(&str, &str, &str)] = &[
    (
        "code",
        "`__code__` of `watch_mode` was set",
        "import sys\ndef quiet(seen):\n    pass\nsys.modules['_warpsmith_shim'].watch_mode.__code__ = quiet.__code__\n",
    ),
    (
        "defaults",
        "`__kwdefaults__` of `assert_close` was set",
        "import torch.testing\ntorch.testing.assert_close.__kwdefaults__ = {**torch.testing.assert_close.__kwdefaults__, 'rtol': 1.0}\n",
    ),
    (
        "closure",
        "calls was replaced",
        "import torch.nn.functional\ntorch.nn.functional.max_pool2d.__closure__[0].cell_contents = len\n\
         torch.nn.functional.max_pool2d.__closure__[-1].cell_contents = len\n",
    ),
    (
        "class",
        "`torch.utils._python_dispatch.TorchDispatchMode.__enter__` was replaced",
        "import torch.utils._python_dispatch as modes\nmodes.TorchDispatchMode.__enter__ = lambda self: self\n",
    ),
    (
        "defaults_in_place",
        "the defaults of `torch.testing.assert_close` were changed",
        "import torch.testing\ntorch.testing.assert_close.__kwdefaults__.update(rtol=1e9, atol=1e9)\n",
    ),
    (
        "inherited",
        "`torch.Tensor.allclose` was replaced",
        "import torch\ntorch.Tensor.allclose = lambda self, other, *args, **kwargs: True\n",
    ),
    ("early", "`sys._getframe` was called", "import sys\nKEPT = sys._getframe()\n"),
];
const IN_CALL: &[(&str, &str, &str)] = &[
    ("frame", "`sys._getframe` was called", "    sys._getframe(0).f_back\n"),
    ("frame_of_text", "`sys._getframe` was called", "    exec('sys._getframe(1)')\n"),
    ("inspected", "`sys._getframe` was called", "    import inspect\n    inspect.stack()\n"),
    (
        "traceback",
        "`tb_frame` was read",
        "    try:\n        raise ValueError\n    except ValueError as error:\n        error.__traceback__.tb_frame.f_back\n",
    ),
    (
        "walked",
        "`sys._getframe` was called",
        // The function goes four frames up before it begins.
        "    import traceback\n    def deep(left): return deep(left - 1) if left else list(traceback.walk_stack(None))\n    deep(5)\n",
    ),
    ("collected", "`gc.get_objects` was called", "    import gc\n    gc.get_objects()\n"),
];
/// What looks alike and is of no concern.
const RIGHT: &[(&str, &str)] = &[
    (
        "prints_traceback",
        "    import traceback\n    try:\n        raise ValueError\n    except ValueError:\n        traceback.format_exc()\n",
    ),
    ("logs", "    import logging\n    logging.getLogger('mine').info('called')\n"),
    ("makes_types", "    import collections\n    collections.namedtuple('Pair', 'a b', defaults=(1,))(2)\n"),
    ("reads_signature", "    import inspect\n    inspect.signature(scale)\n"),
    ("changes_own", "    def one(): pass\n    def two(): pass\n    one.__code__ = two.__code__\n"),
];

fn told(original: &str, candidates: &[(String, Edit<'_>)]) -> Vec<(String, String, String)> {
    let candidates: Vec<(&str, Edit<'_>)> = candidates.iter().map(|(name, edit)| (name.as_str(), *edit)).collect();
    let (reports, _) = Project::new(original, &candidates).batch(&["--quick", "--jobs", "2"]);
    let of = |report: &Report| (report.name(), report.said().to_owned(), report.0["evidence"].to_string());
    reports.iter().map(of).collect()
}

#[test]
fn code_defaults_closures_classes_and_frames_are_guarded() {
    let (at_load, in_call) = (TOP, |text: &str| format!("{text}{RETURN}"));
    let calls: Vec<String> = IN_CALL.iter().map(|(.., text)| in_call(text)).collect();
    let rights: Vec<String> = RIGHT.iter().map(|(_, text)| in_call(text)).collect();
    let loads: Vec<String> = AT_LOAD.iter().map(|(.., text)| format!("{text}\n{TOP}")).collect();
    let mut candidates: Vec<(String, Edit<'_>)> = Vec::new();
    let edits = AT_LOAD.iter().zip(&loads).map(|((name, ..), text)| (name, (at_load, text.as_str())));
    candidates.extend(edits.map(|(name, edit)| ((*name).to_owned(), edit)));
    let edits = IN_CALL.iter().zip(&calls).map(|((name, ..), text)| (name, (RETURN, text.as_str())));
    candidates.extend(edits.map(|(name, edit)| ((*name).to_owned(), edit)));
    candidates.extend(RIGHT.iter().zip(&rights).map(|((name, _), text)| ((*name).to_owned(), (RETURN, text.as_str()))));
    let wrong: Vec<String> = told(SCALE, &candidates)
        .into_iter()
        .filter(|(name, said, evidence)| {
            let expected = AT_LOAD.iter().chain(IN_CALL).find(|(known, ..)| known == name);
            expected.map_or(said != "accepted", |(_, words, _)| said != "tampering" || !evidence.contains(words))
        })
        .map(|(name, said, evidence)| format!("{name}: {said}: {evidence}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What the original does, too, is no reason to refuse a candidate.
#[test]
fn an_original_that_reads_frames_has_candidates_that_do() {
    let original = SCALE.replace(RETURN, &format!("    sys._getframe(0).f_back\n{RETURN}"));
    let told = told(&original, &[("faster".to_owned(), FASTER)]);
    assert_eq!(told[0].1, "accepted", "{told:?}");
}
