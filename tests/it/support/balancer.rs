//! `HAProxy` with the configuration of `deploy/`.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use centile::dev::local::Watchdog;

use super::{
    client, folder, next_number,
    wait::{until, until_blocking},
};

/// A load balancer in front of three instances; stopped when it is dropped. A failing test prints
/// its log.
#[derive(Debug)]
pub struct Balancer {
    /// `http://HOST:PORT`, without a trailing slash.
    pub url: String,
    status_url: String,
    client: reqwest::Client,
    child: Child,
    watchdog: Watchdog,
    folder: PathBuf,
}

/// Returns a loopback address that only one test uses, so that no other process takes its ports.
pub fn own_loopback() -> Ipv4Addr {
    // Other systems have only 127.0.0.1.
    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST;
    }
    let [.., high, low] = std::process::id().to_be_bytes();
    let [.., number] = next_number().to_be_bytes();
    Ipv4Addr::new(127, 0x80 | high, low, number)
}

impl Balancer {
    /// Starts `HAProxy` in front of instances at these `HOST:PORT`, and returns once both of its ports
    /// accept connections; blocks.
    pub fn start(instances: &[String; 3]) -> Self {
        let free = |address: Ipv4Addr| TcpListener::bind((address, 0)).unwrap().local_addr().unwrap();
        let own = own_loopback();
        let (bind, status) = (free(own), free(own));
        let folder = folder("haproxy");
        fs::create_dir_all(&folder).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut watchdog = Watchdog::new(&[&folder]).unwrap();
        let mut command = Command::new(program());
        command.env_clear().args(["-db", "-f"]).arg(Self::configuration());
        command.env("CENTILE_BIND", bind.to_string()).env("CENTILE_STATUS", status.to_string());
        for (number, address) in (1..).zip(instances) {
            command.env(format!("CENTILE_{number}"), address);
        }
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        watchdog.watch(child.id()).unwrap();
        let (url, status_url) = (format!("http://{bind}"), format!("http://{status}"));
        let mut balancer = Self { url, status_url, client: client(), child, watchdog, folder };
        until_blocking("HAProxy listens", || {
            let has_ended = balancer.child.try_wait().unwrap().is_some();
            assert!(!has_ended, "HAProxy does not start: {}", balancer.log());
            [bind, status].iter().all(|address| TcpStream::connect(address).is_ok())
        });
        balancer
    }

    /// Returns the path of the configuration.
    pub fn configuration() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/haproxy.cfg")
    }

    /// Returns the full address of a path that begins with a slash.
    pub fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Waits until an instance, numbered from 0, gets requests (`UP`) or gets none (`DOWN`).
    pub async fn until(&self, instance: usize, state: &str) {
        let what = format!("HAProxy finds instance {instance} {state}");
        // A number follows while HAProxy makes sure.
        until(&what, async || self.value(instance, "status").await.split(' ').next() == Some(state)).await;
    }

    /// Waits until no request is in flight to an instance.
    pub async fn until_idle(&self, instance: usize) {
        until("no request is in flight", async || self.value(instance, "scur").await == "0").await;
    }

    /// Returns a column of the statistics.
    pub async fn value(&self, instance: usize, column: &str) -> String {
        let response = self.client.get(format!("{}/;csv", self.status_url)).send().await.unwrap();
        let text = response.text().await.unwrap();
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap().trim_start_matches("# ").split(',').collect();
        let place = names.iter().position(|name| *name == column).unwrap_or_else(|| panic!("no {column}"));
        let server = format!("instances,{},", instance + 1);
        let line = lines.find(|line| line.starts_with(&server)).unwrap_or_else(|| panic!("no {server} in {text}"));
        line.split(',').nth(place).unwrap().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.watchdog.forget().ok();
        if thread::panicking() {
            eprintln!("--- HAProxy wrote:\n{}---", self.log());
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn program() -> &'static Path {
    let places = ["/usr/sbin/haproxy", "/usr/bin/haproxy", "/usr/local/sbin/haproxy", "/opt/homebrew/bin/haproxy"];
    let found = places.into_iter().map(Path::new).find(|program| program.is_file());
    found.expect("HAProxy is installed: run `scripts/setup.sh test`")
}
