//! Headless Chromium, controlled through the W3C's `WebDriver` protocol by the driver that comes
//! with it.
//!
//! `WebDriver` is JSON over HTTP. CONTRIBUTING.md gives the reason not to use fantoccini.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use centile::dev::local::{Watchdog, signal};
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{folder, wait::DEADLINE};

/// Attempts to start a driver.
const PORTS: u32 = 5;
/// Interval between two checks of a page.
const POLL: Duration = Duration::from_millis(20);
/// The member that holds the id of an element (`WebDriver`, 12.1).
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys as `WebDriver` names them (17.4.2).
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";

/// Idle browsers. A start takes seconds of a core, so tests share browsers in sequence. A static is
/// never dropped; watchdogs end the browsers with the test process.
static IDLE: Mutex<Vec<Chromium>> = Mutex::new(Vec::new());

/// The browser of one test: a separate tab, closed when this value is dropped.
#[derive(Debug)]
pub struct Browser {
    client: reqwest::Client,
    /// Address of its session.
    session: String,
    chromium: Option<Chromium>,
}

/// A Chromium with its driver and a separate profile.
#[derive(Debug)]
struct Chromium {
    /// Address of the only session.
    session: String,
    driver: Child,
    /// The browser's own process.
    pid: u32,
    watchdogs: [Watchdog; 2],
    profile: PathBuf,
}

impl Browser {
    /// Takes an idle browser or starts one, with a new tab in a window of a desktop.
    pub async fn start() -> Self {
        let client = reqwest::Client::builder().timeout(DEADLINE).build().unwrap();
        let idle = IDLE.lock().unwrap().pop();
        let chromium = match idle {
            Some(chromium) => chromium,
            None => Chromium::start(&client).await,
        };
        Self { client, session: chromium.session.clone(), chromium: Some(chromium) }
    }

    async fn ask(&self, method: Method, command: &str, body: Option<Value>) -> Result<Value, String> {
        call(&self.client, method, &format!("{}/{command}", self.session), body).await
    }

    async fn post(&self, command: &str, body: Value) -> Value {
        self.ask(Method::POST, command, Some(body)).await.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Opens an address, and returns when it is loaded.
    pub async fn open(&self, url: &str) {
        self.post("url", json!({"url": url})).await;
    }

    /// Sends further commands to the first frame of the page, or to the page again.
    pub async fn look_into_frame(&self, is_within: bool) {
        let command = if is_within { "frame" } else { "frame/parent" };
        self.post(command, if is_within { json!({"id": 0}) } else { json!({}) }).await;
    }

    /// The current address.
    pub async fn address(&self) -> String {
        let address = self.ask(Method::GET, "url", None).await.unwrap();
        address.as_str().unwrap().to_owned()
    }

    /// Goes back in its history.
    pub async fn back(&self) {
        self.post("back", json!({})).await;
    }

    /// Runs a function with this body in the page; returns its result.
    pub async fn run(&self, body: &str) -> Value {
        self.run_with(body, json!([])).await
    }

    /// As [`Self::run`], with arguments.
    pub async fn run_with(&self, body: &str, arguments: Value) -> Value {
        self.post("execute/sync", json!({"script": body, "args": arguments})).await
    }

    /// Runs a function with this body in the page; returns the value that it passes to its last
    /// argument, a callback.
    pub async fn run_until_called(&self, body: &str) -> Value {
        self.post("execute/async", json!({"script": body, "args": []})).await
    }

    /// Waits until this expression is true in the current page.
    pub async fn until(&self, expression: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            // Between two pages, no page answers.
            let script = json!({"script": format!("return Boolean({expression})"), "args": []});
            let answer = self.ask(Method::POST, "execute/sync", Some(script)).await;
            if answer == Ok(Value::Bool(true)) {
                return;
            }
            assert!(Instant::now() < end, "timeout: {expression}: {answer:?}; {}", self.text("body").await);
            tokio::time::sleep(POLL).await;
        }
    }

    async fn element(&self, selector: &str) -> String {
        let found = self.post("element", json!({"using": "css selector", "value": selector})).await;
        found[ELEMENT].as_str().unwrap_or_else(|| panic!("no {selector}")).to_owned()
    }

    /// The visible text of an element.
    pub async fn text(&self, selector: &str) -> String {
        let element = self.element(selector).await;
        let text = self.ask(Method::GET, &format!("element/{element}/text"), None).await.unwrap();
        text.as_str().unwrap().to_owned()
    }

    /// Clicks a visible element, and waits until a page that it opens is loaded.
    pub async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.post(&format!("element/{element}/click"), json!({})).await;
    }

    /// Replaces the text of a field.
    pub async fn write(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.post(&format!("element/{element}/clear"), json!({})).await;
        self.post(&format!("element/{element}/value"), json!({"text": text})).await;
    }

    /// Presses keys in sequence.
    pub async fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()})))
            .collect();
        self.post("actions", json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})).await;
    }

    /// Runs a command of the Chrome `DevTools` Protocol.
    pub async fn chromium(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({"cmd": command, "params": parameters})).await
    }

    /// Sets the size of the window in CSS pixels, and whether it is a phone.
    pub async fn resize(&self, width: u32, height: u32, is_phone: bool) {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        self.chromium("Emulation.setDeviceMetricsOverride", screen).await;
    }

    /// Sets the preferred color scheme, `dark` or `light`.
    pub async fn prefer(&self, scheme: &str) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.chromium("Emulation.setEmulatedMedia", media).await;
    }

    /// The browser's errors since the last call: failed scripts, missing files, violations of a
    /// policy.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.post("se/log", json!({"type": "browser"})).await;
        let lines = log.as_array().unwrap().iter().filter(|line| line["level"] != "INFO" && line["level"] != "DEBUG");
        lines.map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Saves a screenshot as PNG.
    pub async fn picture(&self, path: &Path) {
        let picture = self.ask(Method::GET, "screenshot", None).await.unwrap();
        fs::write(path, STANDARD.decode(picture.as_str().unwrap()).unwrap()).unwrap();
    }
}

impl Chromium {
    /// Starts a browser with its driver.
    async fn start(client: &reqwest::Client) -> Self {
        let profile = folder("browser");
        fs::create_dir_all(&profile).unwrap();
        let profile = profile.canonicalize().unwrap();
        let [mut driver_dog, mut browser_dog] = [(); 2].map(|()| Watchdog::new(&[&profile]).unwrap());
        let (driver, place, driver_dog) = tokio::task::spawn_blocking(move || {
            let mut launched = (0..PORTS).filter_map(|_| launch(&mut driver_dog));
            let (driver, place) = launched.next().expect("a driver that starts");
            drop(launched);
            (driver, place, driver_dog)
        })
        .await
        .unwrap();
        let profile_argument = format!("--user-data-dir={}", profile.join("profile").display());
        let arguments = [
            "--headless=new",
            // Chromium refuses to run as root otherwise; the tests open only their own pages.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
            "--lang=en-GB",
            "--window-size=1280,900",
            // Every other host is unreachable.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            &profile_argument,
        ];
        let limit = DEADLINE.as_millis();
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
            "timeouts": {"script": limit, "pageLoad": limit},
        }}});
        let made = call(client, Method::POST, &format!("{place}/session"), Some(wanted)).await.expect("a session");
        let pid = made["capabilities"]["goog:processID"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap();
        browser_dog.watch(pid).unwrap();
        let session = format!("{place}/session/{}", made["sessionId"].as_str().unwrap());
        Self { session, driver, pid, watchdogs: [driver_dog, browser_dog], profile }
    }

    /// Replaces the tab by a new one without its settings, and clears errors. Blocks.
    fn clear(&self) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| error.to_string())?.block_on(async {
            let client = reqwest::Client::new();
            let order = async |method, command: &str, body| {
                call(&client, method, &format!("{}/{command}", self.session), body).await
            };
            let tab = order(Method::POST, "window/new", Some(json!({"type": "tab"}))).await?;
            order(Method::DELETE, "window", None).await?;
            order(Method::POST, "window", Some(json!({"handle": tab["handle"]}))).await?;
            order(Method::POST, "se/log", Some(json!({"type": "browser"}))).await?;
            Ok(())
        })
    }

    /// Quits the browser, and waits for all its processes.
    fn quit(&self) -> io::Result<()> {
        let (place, session) = self.session["http://".len()..].split_once('/').unwrap_or_default();
        let mut driver = TcpStream::connect(place)?;
        driver.set_read_timeout(Some(Duration::from_secs(10)))?;
        write!(driver, "DELETE /{session} HTTP/1.1\r\nhost: {place}\r\nconnection: close\r\n\r\n")?;
        // The driver answers when the browser has ended.
        driver.read_exact(&mut [0])
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let Some(chromium) = self.chromium.take() else { return };
        // After a failure its state is unknown: end it.
        if thread::panicking() {
            return;
        }
        // A runtime cannot block inside another one, hence the thread.
        let clearing = thread::spawn(move || chromium.clear().is_ok().then_some(chromium));
        if let (Ok(Some(chromium)), Ok(mut idle)) = (clearing.join(), IDLE.lock()) {
            idle.push(chromium);
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // If it were killed, its other processes would write to the profile for a while.
        if self.quit().is_err() {
            signal(self.pid, "KILL").ok();
        }
        self.driver.kill().ok();
        self.driver.wait().ok();
        for watchdog in &mut self.watchdogs {
            watchdog.forget().ok();
        }
        let end = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir_all(&self.profile).is_err() && self.profile.exists() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Starts a driver; returns it with its address. `None` if it does not start: it binds a free port
/// twice, for IPv4 and IPv6, and another process may take the second.
fn launch(watchdog: &mut Watchdog) -> Option<(Child, String)> {
    let mut command = Command::new("chromedriver");
    command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut driver = command.spawn().expect("chromedriver, which `scripts/setup.sh test` installs");
    watchdog.watch(driver.id()).unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines().map_while(Result::ok);
    let Some(line) = lines.find(|line| line.contains("started successfully on port")) else {
        driver.kill().ok();
        driver.wait().ok();
        watchdog.forget().unwrap();
        return None;
    };
    // Read its further output, so that it does not block.
    thread::spawn(move || lines.for_each(drop));
    let port: String = line.chars().filter(char::is_ascii_digit).collect();
    Some((driver, format!("http://127.0.0.1:{port}")))
}

/// The value of a response, or the driver's error message.
async fn call(client: &reqwest::Client, method: Method, url: &str, body: Option<Value>) -> Result<Value, String> {
    let mut request = client.request(method, url);
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = request.send().await.map_err(|error| error.to_string())?;
    let is_well = response.status().is_success();
    let mut answer: Value = response.json().await.map_err(|error| error.to_string())?;
    let value = answer["value"].take();
    if is_well { Ok(value) } else { Err(value["message"].as_str().unwrap_or_default().to_owned()) }
}
