//! The service over TLS, with curl, openssl and rustls as clients.

use std::{
    fs,
    net::SocketAddr,
    process::{Command, Output},
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, split},
    net::{TcpSocket, TcpStream},
    time::sleep,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{TestAuthority, certified};
use crate::{
    http::limits::{slow::request_more_and_read_late, wire::answer},
    support::{
        Serve, TestDb, make_key, run, run_at, spawn_serve,
        wait::{DEADLINE, until, within},
    },
};

const BUNDLE: &str = "/docs/swagger-ui-bundle.js";

/// Starts a service with the certificate and more flags.
async fn serve(db: &TestDb, authority_files: &TestAuthority, flags: &[&str]) -> Serve {
    let files = [authority_files.file("server.pem"), authority_files.file("server.key")];
    spawn_serve(db, None, &[&["--tls-cert", &files[0], "--tls-key", &files[1]], flags].concat()).await
}

async fn ran(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// Returns curl's output and exit code.
async fn curl(arguments: &[&str]) -> (String, Option<i32>) {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60"]).args(arguments);
    let output = ran(curl).await;
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

/// Returns openssl's report of a handshake.
async fn handshake(serve: &Serve, authority_files: &TestAuthority, flags: &[&str]) -> String {
    let mut openssl = Command::new("openssl");
    openssl.args(["s_client", "-connect", place(serve), "-CAfile", &authority_files.file("ca.pem")]).args(flags);
    let output = ran(openssl).await;
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

fn place(serve: &Serve) -> &str {
    serve.url.strip_prefix("https://").expect("it says that it serves over TLS")
}

/// Opens a TLS connection with a small receive buffer.
async fn connect(serve: &Serve, authority_files: &TestAuthority) -> TlsStream<TcpStream> {
    try_connect(serve, authority_files, "127.0.0.1").await.expect("TLS")
}

/// The same from one of the machine's addresses; `None` if the service refuses.
async fn try_connect(serve: &Serve, authority_files: &TestAuthority, from: &str) -> Option<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority_files.file("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    // The service may reset the connection before the client sees that it is open.
    let stream = socket.connect(place(serve).parse().unwrap()).await.ok()?;
    connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await.ok()
}

/// Returns the certificate that a new connection gets.
async fn shown(serve: &Serve, authority_files: &TestAuthority) -> CertificateDer<'static> {
    connect(serve, authority_files).await.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

#[tokio::test]
async fn requests_and_answers_use_tls() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    run(&db, &["board", "create", "main"]).well();
    let serve = serve(&db, &authority_files, &[]).await;
    let (ca, key) = (authority_files.file("ca.pem"), make_key(db.url(), "server", &[]));
    let (authorization, scores) = (format!("Authorization: Bearer {key}"), serve.at("/v1/boards/main/scores"));

    // Two requests on one connection, with each TLS version. The service does not offer HTTP/2,
    // which curl would prefer.
    for version in ["1.2", "1.3"] {
        let version = [&format!("--tlsv{version}"), "--tls-max", version];
        let event = json!({"user_id": format!("ada {}", version[2]), "points": 5}).to_string();
        let output = "\n%{http_version} %{num_connects}\n";
        let both = [
            &["--cacert", &ca, "-w", output, "-H", &authorization, "--json", &event, &scores][..],
            &version,
            &["--next", "--silent", "--cacert", &ca, "-w", output, &scores],
            &version,
        ];
        let (answers, code) = curl(&both.concat()).await;
        let lines: Vec<&str> = answers.lines().collect();
        assert_eq!(code, Some(0), "{answers}");
        assert_eq!((lines[1], lines[3]), ("1.1 1", "1.1 0"), "{answers}");
        let list: Value = serde_json::from_str(lines[2]).unwrap();
        assert!(list["data"].to_string().contains(version[2]), "{list}");
    }

    // A client that does not trust the authority, and one without TLS.
    assert_eq!(curl(&[&scores]).await.1, Some(60));
    assert!(curl(&[&scores.replace("https://", "http://")]).await.1.is_some_and(|code| code != 0));

    // Browsers must use TLS from now on.
    let (head, _) = curl(&["--cacert", &ca, "--head", &scores]).await;
    assert!(head.to_ascii_lowercase().contains("\nstrict-transport-security: max-age=31536000\r\n"), "{head}");

    // A response far larger than the buffers, read fast and slowly.
    let bundle = serve.at(BUNDLE);
    let (whole, _) = curl(&["--cacert", &ca, &bundle]).await;
    assert!(whole.len() > 1_000_000);
    let (slowly, code) = curl(&["--cacert", &ca, "--limit-rate", "500K", &bundle]).await;
    assert!(code == Some(0) && slowly == whole, "{code:?}, {} bytes", slowly.len());
    let events: Vec<Value> = (0..1_000)
        .map(|number| json!({"user_id": format!("p{number}"), "points": 1, "reason": "r".repeat(100)}))
        .collect();
    fs::write(authority_files.file("events.json"), json!({"events": events}).to_string()).unwrap();
    let data = format!("@{}", authority_files.file("events.json"));
    let (answer, _) = curl(&["--cacert", &ca, "-H", &authorization, "--json", &data, &format!("{scores}/batch")]).await;
    assert_eq!(answer.matches(r#""state":"accepted""#).count(), 1_000);
}

#[tokio::test]
async fn clear_text_is_refused_on_a_tls_port() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    let serve = serve(&db, &authority_files, &[]).await;
    for sent in ["GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "\u{16}\u{3}\u{1}\0\u{4}gibberish", "\0"] {
        let mut stream = TcpStream::connect(place(&serve)).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut said = Vec::new();
        // The connection ends, possibly by a reset.
        within("the end of the connection", stream.read_to_end(&mut said)).await.ok();
        assert!(!said.windows(4).any(|part| part == b"HTTP"), "{:?}", String::from_utf8_lossy(&said));
    }
    let (numbers, _) = curl(&["--cacert", &authority_files.file("ca.pem"), &serve.at("/metrics")]).await;
    let count =
        numbers.lines().find_map(|line| line.strip_prefix("centile_http_connections_cut_total{why=\"handshake\"} "));
    assert!(count.is_some_and(|count| count.parse::<f64>().unwrap() >= 2.0), "{count:?}");

    let clear = spawn_serve(&db, None, &[]).await;
    assert!(clear.url.starts_with("http://"));
    let answer = clear.client.get(clear.at("/healthz")).send().await.unwrap();
    assert!(!answer.headers().contains_key("strict-transport-security"), "{answer:?}");
}

#[tokio::test]
async fn versions_below_tls_1_2_are_refused() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    let serve = serve(&db, &authority_files, &[]).await;
    for old in ["-tls1", "-tls1_1"] {
        // Otherwise openssl itself would refuse to try.
        let said = handshake(&serve, &authority_files, &[old, "-cipher", "ALL:@SECLEVEL=0"]).await;
        let is_refused = said.contains("alert protocol version") || said.contains("alert handshake failure");
        assert!(is_refused && said.contains("Cipher is (NONE)"), "{old}: {said}");
    }
    for (good, version) in [("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")] {
        let said = handshake(&serve, &authority_files, &[good, "-alpn", "h2,http/1.1"]).await;
        assert!(said.contains(version) && said.contains("Verify return code: 0 (ok)"), "{good}: {said}");
        assert!(said.contains("ALPN protocol: http/1.1"), "{good}: {said}");
    }
    let said = handshake(&serve, &authority_files, &["-alpn", "h2"]).await;
    assert!(said.contains("no application protocol"), "{said}");
}

#[tokio::test]
async fn mismatched_certificate_files_are_named_and_refused_at_the_start() {
    let (db, authority_files, other) = (TestDb::new().await, TestAuthority::new(), TestAuthority::new());
    let write = |name: &str, text: &str| {
        fs::write(authority_files.file(name), text).unwrap();
        authority_files.file(name)
    };
    let (chain, key) = (authority_files.file("server.pem"), authority_files.file("server.key"));
    let (none, empty) = (authority_files.file("none.pem"), write("empty.pem", ""));
    let broken = write("broken.pem", "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n");
    let cut = write("cut.pem", &authority_files.certificate.pem()[..200]);
    let false_one = write("false.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let backwards =
        write("backwards.pem", &[authority_files.authority.pem(), authority_files.certificate.pem()].concat());
    let encrypted = authority_files.file("encrypted.key");
    let mut openssl = Command::new("openssl");
    openssl.args(["pkey", "-in", &key, "-aes256", "-passout", "pass:hunter2", "-out", &encrypted]);
    assert!(ran(openssl).await.status.success());

    for (chain, key, flag, words) in [
        (&none, &key, "--tls-cert: ", vec![&*none, "No such file"]),
        (&chain, &none, "--tls-key: ", vec![&none, "No such file"]),
        (&empty, &key, "--tls-cert: ", vec![&empty, "no certificate"]),
        (&key, &key, "--tls-cert: ", vec![&key, "no certificate"]),
        (&broken, &key, "--tls-cert: ", vec![&broken, "damaged"]),
        (&cut, &key, "--tls-cert: ", vec![&cut, "damaged"]),
        (&false_one, &key, "--tls-cert: ", vec![&false_one, "not a certificate"]),
        (&chain, &chain, "--tls-key: ", vec![&chain, "no private key"]),
        (
            &chain,
            &other.file("server.key"),
            "--tls-key: ",
            vec![&other.file("server.key"), &chain, "first certificate"],
        ),
        (&backwards, &key, "--tls-key: ", vec![&backwards, "first certificate"]),
        (&chain, &encrypted, "--tls-key: ", vec![&encrypted, "encrypted"]),
    ] {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", chain, "--tls-key", key];
        run_at(db.url(), &serve).refused(1, &[vec![flag], words].concat());
    }
    run_at(db.url(), &["serve", "--tls-cert", &chain]).refused(1, &["--tls-key: ", "missing"]);
    run_at(db.url(), &["serve", "--tls-key", &key]).refused(1, &["--tls-cert: ", "missing"]);
}

#[tokio::test]
async fn a_client_with_a_slow_handshake_or_head_is_closed() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    let serve = serve(&db, &authority_files, &["--client-timeout", "2", "--workers", "1"]).await;
    // The head of a TLS record that announces a ClientHello, and the first bytes of it.
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let mut ends = Vec::new();
    for sent in [&hello[..0], &hello[..3], hello] {
        let mut stream = TcpStream::connect(place(&serve)).await.unwrap();
        stream.write_all(sent).await.unwrap();
        ends.push(tokio::spawn(async move { stream.read_to_end(&mut Vec::new()).await.ok() }));
    }
    // After the handshake: no head, half a head, and a head that arrives byte by byte.
    for (head, pace) in [("", DEADLINE), ("GET /healthz HT", DEADLINE), ("GET /", Duration::from_millis(100))] {
        let mut stream = connect(&serve, &authority_files).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        ends.push(tokio::spawn(async move {
            let (mut from, mut to) = split(stream);
            let dribbling = async {
                loop {
                    sleep(pace).await;
                    to.write_all(b"x").await.ok();
                    to.flush().await.ok();
                }
            };
            tokio::select! {
                () = dribbling => unreachable!(),
                read = async { from.read_to_end(&mut Vec::new()).await } => read.ok(),
            }
        }));
    }
    // A client that reads no answer.
    let mut full = connect(&serve, &authority_files).await;
    full.write_all(format!("GET {BUNDLE} HTTP/1.1\r\nhost: x\r\n\r\n").repeat(8).as_bytes()).await.unwrap();
    // Meanwhile other clients get answers.
    let (_, code) = curl(&["--cacert", &authority_files.file("ca.pem"), &serve.at("/healthz")]).await;
    assert_eq!(code, Some(0));
    for end in ends {
        within("the end of a slow connection", end).await.unwrap();
    }
    let wanted = [
        ("centile_http_connections_cut_total{why=\"head\"}", 6.0),
        ("centile_http_connections_cut_total{why=\"response\"}", 1.0),
        // The connection of the request itself.
        ("centile_http_connections", 1.0),
    ];
    until("the metrics of closed connections", async || {
        let (numbers, _) = curl(&["--cacert", &authority_files.file("ca.pem"), &serve.at("/metrics")]).await;
        let number =
            |name: &str| numbers.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        wanted.iter().all(|(name, value)| number(name) == Some(*value))
    })
    .await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_handshakes() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    let mut serve = serve(&db, &authority_files, &["--client-timeout", "600", "--stop-within", "600"]).await;
    let _silent = TcpStream::connect(place(&serve)).await.unwrap();
    let mut half = TcpStream::connect(place(&serve)).await.unwrap();
    half.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
    let _idle = connect(&serve, &authority_files).await;
    assert!(serve.stop().await.success());
}

#[tokio::test]
async fn a_renewed_certificate_is_loaded_and_a_broken_one_is_not() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    let serve = serve(&db, &authority_files, &["--client-timeout", "600", "--log", "info"]).await;
    let first = authority_files.certificate.der().clone();
    assert_eq!(shown(&serve, &authority_files).await, first);
    let mut open = connect(&serve, &authority_files).await;

    // The new key is written, but its certificate is not.
    let (second, key) = certified(&authority_files.authority);
    fs::write(authority_files.file("server.key"), &key).unwrap();
    let output = serve.logged("cannot be renewed", 1).await;
    assert!(output.contains(&authority_files.file("server.key")), "the file is named");
    assert_eq!(shown(&serve, &authority_files).await, first);

    fs::write(authority_files.file("server.pem"), second.pem()).unwrap();
    serve.logged("a new certificate is in use", 1).await;
    assert_eq!(&shown(&serve, &authority_files).await, second.der());

    // An open connection continues.
    open.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut said = String::new();
    within("the answer", open.read_to_string(&mut said)).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_behind_an_unread_answer_is_read_later() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    run(&db, &["board", "create", "main"]).well();
    let serve = serve(&db, &authority_files, &["--workers", "1", "--client-timeout", "60"]).await;
    let key = make_key(db.url(), "server", &[]);
    let ca = authority_files.file("ca.pem");
    let (authorization, event) = (format!("Authorization: Bearer {key}"), r#"{"user_id":"ada","points":1}"#);
    let scores = serve.at("/v1/boards/main/scores");
    assert_eq!(curl(&["--cacert", &ca, "-H", &authorization, "--json", event, &scores]).await.1, Some(0));
    let mut stream = connect(&serve, &authority_files).await;
    let from = stream.get_ref().0.local_addr().unwrap().port();
    let port = place(&serve).rsplit_once(':').unwrap().1.parse().unwrap();
    let healthz = serve.at("/healthz");
    let ask = async || assert_eq!(curl(&["--cacert", &ca, &healthz]).await.0, "ok");
    request_more_and_read_late(port, from, &mut stream, ask).await;
}

#[tokio::test]
async fn handshakes_of_an_address_are_limited() {
    let (db, authority_files) = (TestDb::new().await, TestAuthority::new());
    // The address gets its next token after about a minute.
    let flags = ["--address-rate", "1", "--address-burst", "60", "--client-timeout", "60"];
    let from = async |serve: &Serve, address: &str| {
        let end = Instant::now() + DEADLINE;
        let mut open = Vec::new();
        while let Some(stream) = try_connect(serve, &authority_files, address).await {
            assert!(open.len() < 200 && Instant::now() < end, "the service sets no limit");
            open.push(stream);
        }
        open
    };
    let limited = serve(&db, &authority_files, &flags).await;
    let began = Instant::now();
    let mut open = from(&limited, "127.0.0.1").await;
    let most = 60 + usize::try_from(began.elapsed().as_secs()).unwrap() + 1;
    assert!((60..=most).contains(&open.len()), "{} of at most {most}", open.len());
    // Other addresses are accepted, and open connections stay open.
    let mut other = try_connect(&limited, &authority_files, "127.0.0.2").await.expect("another address");
    for stream in [&mut other, &mut open[0]] {
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let output = answer(stream).await;
        let cut = "centile_http_connections_cut_total{why=\"rate\"} ";
        let count = output.body.lines().find_map(|line| line.strip_prefix(cut)?.parse::<f64>().ok());
        assert!(count.is_some_and(|count| count >= 1.0), "{count:?}");
    }
    // All connections come from the proxy's address.
    let trusting = serve(&db, &authority_files, &[&flags[..], &["--trusted-proxies", "127.0.0.1"]].concat()).await;
    for number in 0..70 {
        assert!(try_connect(&trusting, &authority_files, "127.0.0.1").await.is_some(), "{number}");
    }
}
