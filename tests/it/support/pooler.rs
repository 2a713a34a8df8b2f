//! A `PgBouncer`.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use centile::dev::local::Watchdog;

use super::wait::until_blocking;

/// A pooler in front of a server; stopped when it is dropped.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    child: Child,
    watchdog: Watchdog,
    folder: PathBuf,
}

impl Pooler {
    /// Starts a pooler in `pool_mode` in front of the server of the database at `url`, with that
    /// URL's account for all clients. It creates `folder` for its files and removes it at its end.
    pub fn start(folder: PathBuf, url: &str, pool_mode: &str) -> Self {
        let (account, place) = url.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
        let (user, password) = account.split_once(':').unwrap();
        let (server, _) = place.split_once('/').unwrap();
        let server_port = server.rsplit_once(':').unwrap().1;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        // PgBouncer refuses to run as root.
        let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
        let as_whom = if is_root { "user = nobody" } else { "" };
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={server_port} user={user} password={password}\n\
             [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = {pool_mode}\ndefault_pool_size = 60\nmax_client_conn = 400\n{as_whom}\n"
        );
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("pgbouncer.ini"), settings).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut watchdog = Watchdog::new(&[&folder]).unwrap();
        let child = Command::new(program())
            .arg(folder.join("pgbouncer.ini"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        watchdog.watch(child.id()).unwrap();
        let mut pooler = Self { port, child, watchdog, folder };
        until_blocking("PgBouncer listens", || {
            let has_ended = pooler.child.try_wait().unwrap().is_some();
            assert!(!has_ended, "PgBouncer does not start: {}", pooler.log());
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
        });
        pooler
    }

    /// Returns `url` with the pooler's address in place of the server's.
    pub fn instead(&self, url: &str) -> String {
        let (before, rest) = url.split_once('@').unwrap();
        let (_, after) = rest.split_once('/').unwrap();
        format!("{before}@127.0.0.1:{}/{after}", self.port)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.watchdog.forget().ok();
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn program() -> &'static Path {
    let places =
        ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"];
    let found = places.into_iter().map(Path::new).find(|program| program.is_file());
    found.expect("PgBouncer is installed: run `make setup`")
}
