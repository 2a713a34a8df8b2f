//! The log of an instance, which is written beside the requests.

use tokio::runtime::Handle;

use crate::support::{TestDb, spawn_serve};

/// So many that lines with a long path each find no room where lines wait, which is 4 MiB.
const REQUESTS: usize = 1_000;

fn long_path(n: usize) -> String {
    format!("/nowhere/{n}/{}", "x".repeat(8_000))
}

#[tokio::test]
async fn each_request_has_its_line_before_an_instance_ends() {
    let db = TestDb::new().await;
    let mut serve = spawn_serve(&db, None, &["--log", "info"]).await;
    for n in 0..300 {
        serve.client.get(serve.at(&format!("/nowhere/{n}"))).send().await.unwrap();
    }
    assert!(serve.stop().await.success());
    let output = serve.output();
    let lines: Vec<&str> = output.lines().filter(|line| line.contains("answered")).collect();
    assert_eq!(lines.len(), 300, "{output}");
    for (n, line) in lines.iter().enumerate() {
        assert!(line.contains(&format!("path=\"/nowhere/{n}\"")), "{n}: {line}");
    }
    assert!(output.lines().last().is_some_and(|line| line.contains("stopped")), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_nobody_reads_keeps_no_request_waiting_and_what_it_lost_is_told() {
    let db = TestDb::new().await;
    let mut serve = spawn_serve(&db, None, &["--log", "info"]).await;
    let requests = async {
        for n in 0..REQUESTS {
            let answer = serve.client.get(serve.at(&long_path(n))).send().await;
            assert_eq!(answer.unwrap().status(), 404, "{n}");
        }
    };
    tokio::task::block_in_place(|| {
        let _unread = serve.leave_unread();
        Handle::current().block_on(requests);
    });
    serve.told("lines of this log were lost", 1).await;
    assert!(serve.stop().await.success());
    let output = serve.output();
    let of = |words: &str| output.lines().filter(|line| line.contains(words)).collect::<Vec<_>>();
    let lost = |line: &&str| line.rsplit_once("lines=").unwrap().1.parse::<usize>().unwrap();
    let lost: usize = of("lines of this log were lost").iter().map(lost).sum();
    assert!(lost > 0);
    assert_eq!(of("answered").len() + lost, REQUESTS, "lost and told of: {lost}");
}
