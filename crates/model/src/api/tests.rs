use super::*;

#[test]
fn lookups_depend_on_the_certainty_of_the_version() {
    let lookup = |target: TritonTarget, path: &str| target.lookup(&format!("triton.language.{path}"));
    let of = |text: &str| TritonTarget::of(text.parse().unwrap());
    // Added in 3.4; removed in 3.9; never existed.
    let (new, old, none) = ("make_tensor_descriptor", "advance", "cidv");
    assert_eq!(lookup(of("3.3.0"), new), Lookup::Absent);
    assert!(matches!(lookup(of("3.4.0"), new), Lookup::Found(_)));
    assert_eq!(lookup(of("3.9.0"), old), Lookup::Absent);
    for (target, certainty, absent) in [
        (TritonTarget::newest(), VersionCertainty::Assumed, Lookup::Absent),
        (of("3.6.1"), VersionCertainty::Known, Lookup::Absent),
        (of("2.1.0"), VersionCertainty::Outside, Lookup::Undescribed),
        (of("3.0.0"), VersionCertainty::Outside, Lookup::Undescribed),
        (of("4.0.0"), VersionCertainty::Outside, Lookup::Undescribed),
    ] {
        assert_eq!((target.certainty, lookup(target, none)), (certainty, absent), "{target:?}");
    }
    assert!(matches!(lookup(TritonTarget::newest(), old), Lookup::Found(_)));
    let versions: Vec<String> =
        TritonTarget::versions_with("triton.language.advance").iter().map(Version::to_string).collect();
    assert_eq!((versions[0].as_str(), versions[versions.len() - 1].as_str()), ("3.1.0", "3.8.0"));
}
