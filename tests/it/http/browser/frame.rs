//! Boards in frames of a page of another origin, with the strictest policy.

use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::AbortHandle,
};

use super::{SCORES, assert_same, driver::Browser};
use crate::{
    http::api::site::Site,
    http::pages::{board, players},
    support::{TestDb, wait::until},
};

/// A server of one page of another origin; ends when this is dropped.
pub(super) struct Host {
    pub(super) origin: String,
    listener: Option<TcpListener>,
    serving: Option<AbortHandle>,
}

impl Host {
    /// Starts the server, with an empty page.
    pub(super) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        Self { origin, listener: Some(listener), serving: None }
    }

    /// Shows boards of the service at `url` from now on, by the given elements. The policy of the
    /// page allows only the service's script and frames.
    pub(super) fn show(&mut self, url: &str, elements: &str) {
        let page = format!(
            "<!DOCTYPE html><html lang=en><title>A game</title><script type=module src={url}/assets/centile-board.js></script>{elements}"
        );
        let policy = format!("default-src 'none'; script-src {url}; frame-src {url}");
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-security-policy: {policy}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
        let listener = self.listener.take().unwrap();
        let serving = tokio::spawn(async move {
            // A browser also opens connections that it does not use.
            while let Ok((mut stream, _)) = listener.accept().await {
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") && stream.read_buf(&mut head).await.is_ok_and(|bytes| bytes > 0)
                    {
                    }
                    let nothing = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
                    let answer = if head.starts_with(b"GET / ") { &answer } else { nothing };
                    stream.write_all(answer.as_bytes()).await.ok();
                });
            }
        });
        self.serving = Some(serving.abort_handle());
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// Height of the frame, in pixels once the script has set it.
const HEIGHT: &str = "document.querySelector('centile-board iframe').style.height";

#[tokio::test]
async fn an_element_shows_a_board_follows_it_and_changes_with_its_attributes() {
    let db = TestDb::new().await;
    let mut host = Host::new().await;
    let site = Site::start(&db, &["--frame-origins", &host.origin]).await;
    board(&site, &players(30)).await;
    host.show(&site.serve.url, "<centile-board board=main limit=5 theme=dark size=small title=Best></centile-board>");
    let browser = Browser::start().await;
    browser.open(&host.origin).await;
    browser.until(&format!("document.querySelector('centile-board iframe') && {HEIGHT}.endsWith('px')")).await;
    assert_eq!(browser.run("return document.querySelector('iframe').title").await, "Best");

    browser.look_into_frame(true).await;
    browser.until("document.querySelector('.state.live')").await;
    assert_same(&browser, &site, &format!("{SCORES}?limit=5")).await;
    let hidden = "return document.documentElement.scrollHeight - innerHeight";
    assert_eq!(browser.run(hidden).await, 0, "nothing of it is out of sight");
    let look = "const { theme, size } = document.documentElement.dataset; return `${theme} ${size}`";
    assert_eq!(browser.run(look).await, "dark small");
    // A player from far below reaches the first place, as a name without a link.
    site.post(SCORES, json!({"user_id": "p030", "points": 1_000_000})).await.is(200);
    browser.until("document.querySelector('table[data-live=top] tbody tr').dataset.user === 'p030'").await;
    assert_same(&browser, &site, &format!("{SCORES}?limit=5")).await;
    assert_eq!(browser.run("return document.querySelectorAll('a').length").await, 1);

    // Other attributes create another frame, of another height, and no entry in the browser's
    // history.
    browser.look_into_frame(false).await;
    let before = browser.run(&format!("return [history.length, {HEIGHT}]")).await;
    browser
        .run("const board = document.querySelector('centile-board'); board.setAttribute('limit', 3); board.removeAttribute('size')")
        .await;
    browser.until(&format!("{HEIGHT} !== '{}'", before[1].as_str().unwrap())).await;
    let after = browser.run("return [history.length, document.querySelectorAll('iframe').length]").await;
    assert_eq!(after, json!([before[0], 1]));
    browser.look_into_frame(true).await;
    browser.until("document.querySelector('.state.live')").await;
    assert_same(&browser, &site, &format!("{SCORES}?limit=3")).await;
    assert_eq!((browser.run(look).await, browser.run(hidden).await), (json!("dark normal"), json!(0)));

    // Heights from other senders are ignored.
    browser.look_into_frame(false).await;
    let height = browser.run(&format!("return {HEIGHT}")).await;
    browser
        .run_until_called(
            "const done = arguments[0];
            addEventListener('message', ({ data }) => data === 'last' && done());
            for (const message of [{ centile: 'height', height: 7 }, 'last']) postMessage(message, '*')",
        )
        .await;
    assert_eq!(browser.run(&format!("return {HEIGHT}")).await, height);
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_page_of_an_origin_that_is_not_named_shows_nothing() {
    let db = TestDb::new().await;
    let (named, mut other) = (Host::new().await, Host::new().await);
    let site = Site::start(&db, &["--frame-origins", &named.origin]).await;
    board(&site, &players(5)).await;
    other.show(&site.serve.url, "<centile-board board=main></centile-board>");
    let browser = Browser::start().await;
    browser.open(&other.origin).await;
    until("a complaint of frame-ancestors", async || {
        browser.complaints().await.iter().any(|line| line.contains("frame-ancestors"))
    })
    .await;
    browser.look_into_frame(true).await;
    assert_eq!(browser.run("return document.querySelectorAll('[data-board]').length").await, 0);
}
