//! PostgreSQL, Redis and the service over TLS, with a private certificate authority.

mod https;

use std::{fs, path::PathBuf};

use centile::dev::local::{LocalRedis, PostgresOptions};
use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use reqwest::StatusCode;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::support::{Serve, folder, make_key, own_postgres, run_at, wait::until};

/// A certificate authority, and a server certificate for 127.0.0.1 that it has signed.
pub struct TestAuthority {
    dir: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
    certificate: Certificate,
    key: String,
}

impl TestAuthority {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let dir = folder("tls");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
        let (certificate, key) = certified(&authority);
        let authority_files = Self { dir, authority, certificate, key };
        fs::write(authority_files.file("server.pem"), authority_files.certificate.pem()).unwrap();
        fs::write(authority_files.file("server.key"), &authority_files.key).unwrap();
        authority_files
    }

    pub fn file(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }

    /// Starts a Redis that accepts connections over TLS. Returns the port for them.
    pub fn redis(&self) -> (LocalRedis, u16) {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = [
            ("tls-port", &*port.to_string()),
            ("tls-cert-file", &self.file("server.pem")),
            ("tls-key-file", &self.file("server.key")),
            ("tls-auth-clients", "no"),
        ];
        (LocalRedis::start_with(&folder("tls-redis"), &settings).unwrap(), port)
    }
}

/// Creates a certificate for 127.0.0.1, and its private key.
fn certified(authority: &CertifiedIssuer<'static, KeyPair>) -> (Certificate, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    // It needs a name different from the authority's: openssl takes a certificate with its issuer's
    // name for a self-signed one.
    params.distinguished_name.push(DnType::CommonName, "a server");
    (params.signed_by(&key, authority).unwrap(), key.serialize_pem())
}

impl Drop for TestAuthority {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).ok();
    }
}

/// Makes a PostgreSQL server accept connections over TLS only.
async fn demand_tls(url: &str, authority_files: &TestAuthority) {
    let mut admin = PgConnection::connect(url).await.unwrap();
    let data: String =
        sqlx::query_scalar("SELECT current_setting('data_directory')").fetch_one(&mut admin).await.unwrap();
    // The server may run under another account, so it writes the files itself.
    for (name, text) in [("server.crt", &authority_files.certificate.pem()), ("server.key", &authority_files.key)] {
        let write = format!(
            "COPY (SELECT regexp_split_to_table('{}', E'\\r?\\n')) TO PROGRAM 'umask 077; cat > \"{data}/{name}\"'",
            text.trim_end()
        );
        admin.execute(AssertSqlSafe(write)).await.unwrap();
    }
    // Servers of tests store MD5 passwords.
    admin.execute("SET password_encryption = 'scram-sha-256'").await.unwrap();
    let (_, login) = url.split_once("://").unwrap();
    let (user, password) = login.split_once('@').unwrap().0.split_once(':').unwrap();
    admin.execute(AssertSqlSafe(format!("ALTER ROLE {user} PASSWORD '{password}'"))).await.unwrap();
    let rules = "hostssl all all 127.0.0.1/32 scram-sha-256";
    admin.execute(AssertSqlSafe(format!("COPY (SELECT '{rules}') TO '{data}/pg_hba.conf'"))).await.unwrap();
    admin.execute("ALTER SYSTEM SET ssl = on").await.unwrap();
    admin.execute("SELECT pg_reload_conf()").await.unwrap();
}

#[tokio::test]
async fn tls_to_postgresql_and_redis_needs_a_trusted_authority() {
    let (right, wrong) = (TestAuthority::new(), TestAuthority::new());
    let postgres = own_postgres(PostgresOptions::ephemeral()).await;
    let clear = postgres.url("postgres");
    demand_tls(&clear, &right).await;
    let verified = |authority_files: &TestAuthority| {
        format!("{clear}?sslmode=verify-full&sslrootcert={}", authority_files.file("ca.pem"))
    };
    // The settings take effect shortly after the reload.
    until("PostgreSQL demands TLS", async || {
        PgConnection::connect(&verified(&right)).await.is_ok()
            && PgConnection::connect(&format!("{clear}?sslmode=disable")).await.is_err()
    })
    .await;
    run_at(&verified(&wrong), &["board", "list"]).refused(1, &["cannot connect to PostgreSQL", "certificate"]);
    run_at(&format!("{clear}?sslmode=disable"), &["board", "list"]).refused(1, &["cannot connect to PostgreSQL"]);
    run_at(&verified(&right), &["board", "create", "main"]).well();

    let (redis, port) = right.redis();
    let server_key = make_key(&verified(&right), "server", &[]);
    for (authority_files, cache) in [(&right, "reachable"), (&wrong, "unreachable")] {
        let (url, address) = (verified(&right), format!("rediss://127.0.0.1:{port}"));
        let flags = ["--redis-ca".to_owned(), authority_files.file("ca.pem")];
        let serve =
            tokio::task::spawn_blocking(move || Serve::spawn(&url, Some(&address), "tls", &flags)).await.unwrap();
        let request = serve.client.post(serve.at("/v1/boards/main/scores")).bearer_auth(&server_key);
        let answer = request.json(&json!({"user_id": "ada", "points": 5})).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let wanted = format!(r#""cache":"{cache}""#);
        until("the expected state of the cache", async || {
            let answer = serve.client.get(serve.at("/readyz")).send().await.unwrap().text().await.unwrap();
            // A busy machine may take longer than the 50 ms that a call may take.
            assert!(cache == "reachable" || answer.contains(&wanted), "{answer}");
            answer.contains(&wanted)
        })
        .await;
    }
    drop(redis);
}
