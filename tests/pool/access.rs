//! Tests of access control of a pool, as Ray offers it and the manual describes it.

use std::path::Path;
use std::process::Command;

use crate::CANDIDATES;
use crate::judging::{Project, SCALE, text};
use crate::ray::{Cluster, judge_in, without_gpu};

/// The output of the program with these variables, and its status.
fn shown(project: &Project, args: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let ran = without_gpu(project, args).envs(variables.iter().copied()).output().unwrap();
    (ran.status.code(), text(&[ran.stdout, ran.stderr].concat()))
}

/// Asserts that a candidate is judged in the pool with these variables.
fn is_judged(project: &Project, variables: &[(&str, &str)]) {
    let (code, said) = shown(project, &["verify", "original.py", "candidates/faster.py", "--quick"], variables);
    assert!(code == Some(0) && said.contains("judged on toy (simulated), GPU 0 of"), "{variables:?}: {said}");
}

#[test]
fn a_pool_with_a_token_requires_and_forwards_it() {
    let project = Project::new(SCALE, CANDIDATES);
    // The token of the user who runs this test is neither used nor looked for.
    let own = project.path("home");
    std::fs::create_dir(&own).unwrap();
    let (token, home) = (("RAY_AUTH_MODE", "token"), ("HOME", own.to_str().unwrap()));
    let right = [home, token, ("RAY_AUTH_TOKEN", "0123456789abcdef0123456789abcdef")];
    let cluster = Cluster::start_with(&["toy"], &right[1..]);
    for address in [&cluster.client_address, &cluster.address] {
        judge_in(&project, address, "");
        is_judged(&project, &right);
        let wrong = [home, token, ("RAY_AUTH_TOKEN", "fedcba9876543210fedcba9876543210")];
        for variables in [&wrong[..], &[home, token], &[home]] {
            for args in [&["pool", "status"][..], &["doctor", "--evaluator"]] {
                let (code, said) = shown(&project, args, variables);
                assert!(
                    code != Some(0) && said.contains("set RAY_AUTH_MODE=token and"),
                    "{address} {variables:?}: {said}"
                );
            }
        }
    }
}

#[test]
fn a_pool_with_tls_requires_and_forwards_certificates() {
    let project = Project::new(SCALE, CANDIDATES);
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| project.path(name));
    certify(&certificate, &key);
    let variables = [
        ("RAY_USE_TLS", "1"),
        ("RAY_TLS_SERVER_CERT", certificate.to_str().unwrap()),
        ("RAY_TLS_SERVER_KEY", key.to_str().unwrap()),
        ("RAY_TLS_CA_CERT", certificate.to_str().unwrap()),
    ];
    let cluster = Cluster::start_with(&["toy"], &variables);
    for address in [&cluster.client_address, &cluster.address] {
        judge_in(&project, address, "");
        is_judged(&project, &variables);
        let (code, said) = shown(&project, &["pool", "status"], &[]);
        assert!(code == Some(2) && said.contains("RAY_USE_TLS"), "{address}: {said}");
    }
}

/// Creates a self-signed certificate for this machine.
fn certify(certificate: &Path, key: &Path) {
    let ran = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"])
        .args([Path::new("-out"), certificate, Path::new("-keyout"), key])
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", text(&ran.stderr));
}
