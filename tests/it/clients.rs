//! The clients in `clients/` match the OpenAPI document and work against the service.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{http_api::site::Site, support::TestDb};

/// Returns the path of a file or folder of the repository.
fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a client's test in its folder against a service with the empty boards `main` and `arena`,
/// and checks what it wrote. The README's lines write to `main`, the test's own lines to `arena`.
async fn talks_to_the_service(folder: &str, program: &str, arguments: &[&str]) {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    for slug in ["main", "arena"] {
        site.board(json!({"slug": slug}), &[]).await;
    }
    let mut command = Command::new(program);
    command.args(arguments).current_dir(at(folder));
    command.env("CENTILE_URL", &site.serve.url).env("CENTILE_KEY", &site.server_key);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; scripts/setup.sh test installs it"));
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    // A runner that finds no test also succeeds.
    for slug in ["main", "arena"] {
        let ada = site.get(&format!("/v1/boards/{slug}/scores/ada")).await.is(200);
        assert_eq!(
            (&ada["score"], &ada["rank"], &ada["players"]),
            (&json!(50), &json!(2), &json!(2)),
            "{slug}: {told}"
        );
    }
}

#[tokio::test]
async fn the_typescript_client_works() {
    talks_to_the_service("clients/typescript", "npm", &["test", "--silent"]).await;
}

#[tokio::test]
async fn the_python_client_works() {
    let python = at(".centile/tools/clients-python/bin/python");
    talks_to_the_service("clients/python", python.to_str().unwrap(), &["-B", "-m", "unittest", "test_client"]).await;
}

#[test]
fn clients_match_the_document() {
    let digest = Sha256::digest(fs::read(at("docs/openapi.json")).unwrap());
    let digest = digest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let made_of = fs::read_to_string(at("clients/openapi.sha256")).unwrap();
    assert_eq!(made_of.split_whitespace().next(), Some(&*digest), "docs/openapi.json has changed: make clients");
}

#[test]
fn the_lockfile_names_no_registry() {
    let lock = fs::read_to_string(at("clients/typescript/package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\""));
}
