//! Server-Sent Events, parsed as the standard defines them (WHATWG HTML, 9.2.6).

use std::time::Duration;

use reqwest::{Response, StatusCode};
use serde_json::Value;

use crate::support::{Serve, wait::within};

/// An event, or a comment, which has no kind.
#[derive(Debug, Clone)]
pub struct Event {
    pub kind: String,
    pub data: Value,
}

/// A stream that is being read.
#[derive(Debug)]
pub struct Stream {
    pub response: Response,
    text: String,
    /// The id for `Last-Event-ID` when reconnecting.
    pub last_id: String,
}

impl Stream {
    /// Opens a stream, which must succeed.
    pub async fn open(serve: &Serve, path: &str, headers: &[(&str, &str)]) -> Self {
        let response = ask(serve, path, headers).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        Self { response, text: String::new(), last_id: String::new() }
    }

    /// Returns the next event or comment; `None` at the end.
    pub async fn part(&mut self) -> Option<Event> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(self.parse(&block));
            }
            let chunk = within("an event", self.response.chunk()).await.ok()??;
            self.text.push_str(str::from_utf8(&chunk).expect("events are UTF-8"));
        }
    }

    fn parse(&mut self, block: &str) -> Event {
        let mut event = Event { kind: String::new(), data: Value::Null };
        for line in block.lines() {
            let (field, value) = line.split_once(':').expect("a field");
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut event.kind),
                "data" => event.data = serde_json::from_str(value).expect("data are JSON"),
                "id" => value.clone_into(&mut self.last_id),
                "" | "retry" => {}
                other => panic!("{other:?} is no field of an event"),
            }
        }
        assert!(event.kind.is_empty() || event.data["type"] == event.kind, "{block}");
        event
    }

    /// Returns the next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Event> {
        let reading = async {
            loop {
                let part = self.part().await?;
                if !part.kind.is_empty() {
                    return Some(part);
                }
            }
        };
        within("an event", reading).await
    }

    /// Returns the next event, which must be of this kind. On a machine that stood still, a `stale`
    /// event and the `continued` after it may precede it.
    pub async fn one(&mut self, kind: &str) -> Value {
        let mut event = self.next().await.expect("an event");
        while kind != "stale" && event.kind == "stale" {
            assert!(event.data["stale_for_seconds"].as_u64().unwrap() >= 2, "{event:?}");
            event = self.next().await.expect("an event");
            if kind != "continued" && event.kind == "continued" {
                event = self.next().await.expect("an event");
            }
        }
        assert_eq!(event.kind, kind, "{event:?}");
        event.data
    }

    /// Reads until an event matches; returns it.
    pub async fn until(&mut self, what: impl Fn(&Event) -> bool) -> Event {
        let reading = async {
            loop {
                let event = self.next().await.expect("an event");
                if what(&event) {
                    return event;
                }
            }
        };
        within("a matching event", reading).await
    }

    /// Reads to the end.
    pub async fn end(&mut self) {
        let reading = async { while self.part().await.is_some() {} };
        within("the end of the stream", reading).await;
    }
}

/// Requests a stream.
pub async fn ask(serve: &Serve, path: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = serve.client.get(serve.at(path)).timeout(Duration::from_mins(10));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.expect("an answer")
}
