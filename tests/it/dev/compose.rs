//! `compose.yaml` and `Containerfile`, without a container engine: their shape, and the commands of
//! their services against private servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
    process::Command,
};

use centile::dev::local::signal;
use reqwest::Url;
use serde_json::{Value, json};

use crate::support::{
    Ran, Serve, TestDb, balancer::Balancer, centile, client, demo::RemovedFolder, folder, own_redis, wait::until,
};

/// The services that are instances.
const INSTANCES: [&str; 3] = ["centile-1", "centile-2", "centile-3"];

/// Returns the text of a file of the repository.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns `compose.yaml` as JSON, with its aliases resolved.
fn compose() -> Value {
    serde_saphyr::from_str(&read("compose.yaml")).unwrap()
}

/// Returns the strings of a list; none if there is no list.
fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Returns the member names of an object; none if there is no object.
fn names(object: &Value) -> BTreeSet<String> {
    object.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect()
}

/// Returns the services in the order in which compose starts them.
fn start_order(services: &Value) -> Vec<String> {
    let mut order: Vec<String> = Vec::new();
    while order.len() < names(services).len() {
        let is_next = |name: &&String| {
            !order.contains(name) && names(&services[name.as_str()]["depends_on"]).iter().all(|on| order.contains(on))
        };
        let next = names(services).iter().find(is_next).expect("no cycle in depends_on").clone();
        order.push(next);
    }
    order
}

/// A mount of a service: its source and its path in the container.
fn mounts(service: &Value) -> Vec<(String, String)> {
    let split = |mount: String| {
        let parts: Vec<&str> = mount.split(':').collect();
        (parts[0].to_owned(), parts[1].to_owned())
    };
    strings(&service["volumes"]).into_iter().map(split).collect()
}

/// The instructions of `Containerfile`, as (name, rest), with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = read("Containerfile");
    let text: String =
        text.lines().filter(|line| !line.starts_with('#')).fold(String::new(), |text, line| text + line + "\n");
    let text = text.replace("\\\n", " ");
    let split = |line: &str| line.split_once(' ').map(|(name, rest)| (name.to_owned(), rest.trim().to_owned()));
    text.lines().filter_map(split).collect()
}

/// Returns the last instruction of this name.
fn instruction(name: &str) -> String {
    instructions().into_iter().rfind(|(found, _)| found == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn the_services_fit_together() {
    let compose = compose();
    let services = &compose["services"];
    assert_eq!(start_order(services), [&["postgres", "redis", "setup"][..], &INSTANCES, &["haproxy"]].concat());
    let mut volumes = BTreeSet::new();
    for name in names(services) {
        let service = &services[&name];
        let image = service["image"].as_str().unwrap();
        assert!(!image.contains('/'), "{name}: {image} is not an official image");
        if service["build"].is_null() {
            assert!(image.contains(':'), "{name}: {image} names no version");
        } else {
            assert_eq!(service["build"], json!({"context": ".", "dockerfile": "Containerfile"}), "{name}");
        }
        for on in names(&service["depends_on"]) {
            match service["depends_on"][&on]["condition"].as_str().unwrap() {
                "service_healthy" => assert!(services[&on]["healthcheck"].is_object(), "{name} waits for {on}"),
                "service_completed_successfully" => assert!(services[&on]["restart"].is_null(), "{name} on {on}"),
                other => panic!("{name} waits until {on} is {other}"),
            }
        }
        for (source, _) in mounts(service) {
            if source.starts_with('.') {
                assert!(root().join(&source).is_file(), "{name}: {source} does not exist");
            } else {
                volumes.insert(source);
            }
        }
        for port in strings(&service["ports"]) {
            assert!(port.starts_with("127.0.0.1:"), "{name}: {port} is open to other machines");
        }
        for (variable, value) in service["environment"].as_object().into_iter().flatten() {
            if variable.ends_with("_URL") {
                let url: Url = value.as_str().unwrap().parse().unwrap();
                let host = url.host_str().unwrap();
                assert!(
                    names(&service["depends_on"]).contains(host) || INSTANCES.contains(&name.as_str()),
                    "{name}: {variable} is {url}"
                );
                assert!(services[host].is_object(), "{name}: {variable} is {url}");
            }
        }
    }
    assert_eq!(names(&compose["volumes"]), volumes, "declared and used volumes");
}

/// The tests of `http::instances` run `HAProxy` with the same file.
#[test]
fn haproxy_runs_with_the_tested_file_in_front_of_all_instances() {
    let compose = compose();
    let service = &compose["services"]["haproxy"];
    let (source, target) = mounts(service).pop().unwrap();
    assert_eq!(root().join(source).canonicalize().unwrap(), Balancer::configuration().canonicalize().unwrap());
    // The image's command reads this path.
    assert_eq!(target, "/usr/local/etc/haproxy/haproxy.cfg");
    let port = instruction("EXPOSE");
    for (number, instance) in (1..).zip(INSTANCES) {
        assert_eq!(service["environment"][format!("CENTILE_{number}")], format!("{instance}:{port}"));
        assert!(names(&service["depends_on"]).contains(instance), "{instance}");
    }
    let text = fs::read_to_string(Balancer::configuration()).unwrap();
    for variable in names(&service["environment"]) {
        assert!(text.contains(&format!("presetenv {variable} ")), "{variable} has no effect");
    }
}

#[test]
fn the_image_runs_the_program_without_privileges() {
    let bases: Vec<String> =
        instructions().into_iter().filter(|(name, _)| name == "FROM").map(|(_, rest)| rest).collect();
    let [build, run] = bases.as_slice() else { panic!("{bases:?}") };
    // Both stages need the same glibc.
    assert!(build.starts_with("rust:") && build.ends_with("-bookworm AS build"), "{build}");
    assert_eq!(run, "debian:bookworm-slim");
    let manifest = read("Cargo.toml");
    let minimum =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")).unwrap().trim_end_matches('"');
    assert!(build.starts_with(&format!("rust:{minimum}-")), "{build}, but Cargo.toml says {minimum}");
    let (user, group) =
        instruction("USER").split_once(':').map(|(user, group)| (user.to_owned(), group.to_owned())).unwrap();
    assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    assert_eq!(instruction("STOPSIGNAL"), "SIGTERM");
    assert_eq!(instruction("ENTRYPOINT"), r#"["/usr/local/bin/centile"]"#);
    assert_eq!(instruction("CMD"), r#"["serve"]"#);
    // Named volumes take their owner from the image.
    assert!(instruction("RUN").contains(&format!("--owner={user}")), "{}", instruction("RUN"));
}

/// A private place for the containers: servers, volumes, environment.
struct Engine {
    db: TestDb,
    redis_url: String,
    volumes: RemovedFolder,
}

impl Engine {
    /// Returns a command of a service as compose would run it: with the image's entrypoint and
    /// environment, the service's own, and its mounts. It runs here, with the private servers.
    fn command(&self, service: &Value) -> Command {
        let image = |name: &str| serde_json::from_str::<Value>(&instruction(name)).unwrap();
        let own = service["entrypoint"].is_array();
        let entrypoint = if own { service["entrypoint"].clone() } else { image("ENTRYPOINT") };
        let words = [strings(&entrypoint), strings(&service["command"])].concat();
        let words: Vec<String> = words.iter().map(|word| self.here(service, word)).collect();
        // The binary of this build, also for scripts, which find it in PATH.
        let binary = Path::new(env!("CARGO_BIN_EXE_centile"));
        let mut command = if own { Command::new(&words[0]) } else { centile() };
        command.env_clear().args(&words[1..]);
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", binary.parent().unwrap().display()));
        for (name, value) in self.environment(service) {
            command.env(name, value);
        }
        command
    }

    /// Returns the environment of a service.
    fn environment(&self, service: &Value) -> BTreeMap<String, String> {
        let image = instruction("ENV");
        let image = image.split_whitespace().map(|word| word.split_once('=').unwrap());
        let own = service["environment"].as_object().into_iter().flatten();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str().expect("a string")));
        let mut all: BTreeMap<String, String> =
            image.chain(own).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        for (name, value) in
            [("DATABASE_URL", self.db.url()), ("REDIS_URL", &self.redis_url), ("CENTILE_LISTEN", "127.0.0.1:0")]
        {
            assert!(all.insert(name.to_owned(), value.to_owned()).is_some(), "{name} is not set");
        }
        all
    }

    /// Replaces paths of mounts by their sources, and `$$`, with which compose.yaml writes `$`.
    fn here(&self, service: &Value, word: &str) -> String {
        let mut word = word.replace("$$", "$");
        for (source, target) in mounts(service) {
            let source = if source.starts_with('.') { root().join(source) } else { self.volumes.0.join(source) };
            word = word.replace(&target, source.to_str().unwrap());
        }
        word
    }

    /// Returns the key that the service `setup` has created for a role.
    fn key(&self, role: &str) -> String {
        fs::read_to_string(self.volumes.0.join(format!("keys/{role}-key"))).unwrap().trim().to_owned()
    }
}

/// Runs a health check here, with the port of a private server.
fn check(service: &Value, published: u16, actual: u16) -> Ran {
    let words: Vec<String> = strings(&service["healthcheck"]["test"])
        .iter()
        .map(|word| word.replace("$$", "$").replace(&format!("/{published} "), &format!("/{actual} ")))
        .collect();
    assert_eq!(words[0], "CMD", "a shell's absence must not matter");
    Ran::of(Command::new(&words[1]).args(&words[2..]).env("PGPORT", actual.to_string()))
}

#[tokio::test]
async fn the_services_start_twice_and_serve_the_sample() {
    let compose = compose();
    let services = &compose["services"];
    let redis = own_redis();
    let engine =
        Engine { db: TestDb::empty().await, redis_url: redis.url(), volumes: RemovedFolder(folder("compose")) };
    fs::create_dir_all(engine.volumes.0.join("keys")).unwrap();
    assert!(check(&services["postgres"], 5432, engine.db.port()).well().contains("accepting connections"));
    let words = strings(&services["redis"]["healthcheck"]["test"]);
    assert_eq!(words, ["CMD", "redis-cli", "ping"]);
    let pong = Ran::of(Command::new("redis-cli").args(["-p", &redis.port().to_string(), "ping"])).well();
    assert_eq!(pong.trim(), "PONG");

    let sample = read("examples/scores.csv");
    let players: BTreeSet<&str> = sample.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    let mut keys = Vec::new();
    for score in [500, 1_000] {
        let mut instances = Vec::new();
        for name in start_order(services) {
            let service = &services[&name];
            if service["build"].is_null() {
                continue;
            }
            let mut command = engine.command(service);
            let started = tokio::task::spawn_blocking(move || {
                if INSTANCES.contains(&name.as_str()) {
                    return Some(Serve::start(&mut command));
                }
                let ran = Ran::of(&mut command);
                assert!(ran.code == Some(0), "{name}: {ran:?}");
                None
            });
            instances.extend(started.await.unwrap());
        }
        for (name, serve) in INSTANCES.iter().zip(&instances) {
            let port = serve.url.rsplit_once(':').unwrap().1.parse().unwrap();
            until("the instance is healthy", async || check(&services[*name], 8080, port).code == Some(0)).await;
        }
        let addresses: Vec<String> =
            instances.iter().map(|serve| serve.url.strip_prefix("http://").unwrap().to_owned()).collect();
        let addresses: [String; 3] = addresses.try_into().unwrap();
        let balancer = tokio::task::spawn_blocking(move || Balancer::start(&addresses)).await.unwrap();
        let client = client();

        keys.push([engine.key("server"), engine.key("admin")]);
        let event = json!({ "user_id": "player-007", "points": 500 });
        let submit = client.post(balancer.at("/v1/boards/main/scores")).bearer_auth(engine.key("server"));
        submit.json(&event).send().await.unwrap().error_for_status().unwrap();
        let ops = client.get(instances[0].at("/ops/")).basic_auth("anybody", Some(engine.key("admin")));
        ops.send().await.unwrap().error_for_status().unwrap();
        let read = async |path: &str| -> Value {
            let response = client.get(balancer.at(path)).send().await.unwrap();
            response.error_for_status().unwrap().json().await.unwrap()
        };
        let board = read("/v1/boards/main/scores?period=week&limit=1").await;
        assert_eq!(board["players"], players.len(), "{board}");
        // The sample counts once; this test's scores add up.
        let own: i64 = points(&sample, "player-007");
        let one = read("/v1/boards/main/scores/player-007").await;
        assert_eq!(one["score"], own + score, "{one}");
        for instance in &mut instances {
            // The second signal ends the drain.
            signal(instance.id(), "TERM").unwrap();
            assert_eq!(instance.stop().await.code(), Some(0));
        }
    }
    assert_eq!(keys[0], keys[1], "the second start keeps the keys");
}

/// Returns a player's points in the sample.
fn points(sample: &str, player: &str) -> i64 {
    let (header, events) = sample.split_once('\n').unwrap();
    let column = header.split(',').position(|name| name == "points").unwrap();
    let events = events.lines().filter(|line| line.split(',').nth(1) == Some(player));
    events.map(|line| line.split(',').nth(column).unwrap().parse::<i64>().unwrap()).sum()
}
