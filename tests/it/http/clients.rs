//! Generates the clients from `docs/openapi.json`, and runs their tests against an instance.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use crate::{http::api::site::Site, support::TestDb};

/// Returns the path of a file or folder of the repository.
fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs `command` and returns its output; fails if the command does.
async fn run(mut command: Command) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; run scripts/setup.sh test"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {text}");
    text.into_owned()
}

/// Runs a client's tests in `folder` against an instance with three empty boards, then compares
/// scores. The example in the README writes to `main`, the test itself to `arena` and `large`.
async fn talks_to_the_service(folder: &str, program: &str, arguments: &[&str]) {
    let db = TestDb::new().await;
    let site = Site::start(&db, &[]).await;
    for slug in ["main", "arena", "large"] {
        site.board(json!({"slug": slug}), &[]).await;
    }
    let mut generate = Command::new(at("scripts/clients.sh"));
    generate.arg("make");
    run(generate).await;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(at(folder));
    command.env("CENTILE_URL", &site.serve.url).env("CENTILE_KEY", &site.server_key);
    let output = run(command).await;
    // A test runner succeeds even if it finds no test.
    for slug in ["main", "arena"] {
        let ada = site.get(&format!("/v1/boards/{slug}/scores/ada")).await.is(200);
        assert_eq!(
            (&ada["score"], &ada["rank"], &ada["players"]),
            (&json!(50), &json!(2), &json!(2)),
            "{slug}: {output}"
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
fn the_lockfile_names_no_registry() {
    let lock = fs::read_to_string(at("clients/typescript/package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\""));
}
