//! A service with keys, and requests to it.

use reqwest::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap},
};
use serde_json::{Value, json};

use crate::support::{Serve, TestDb, make_key, redis_url, spawn_serve, wait::DEADLINE};

/// A service with its own database, and a key of each role.
#[derive(Debug)]
pub struct Site {
    pub serve: Serve,
    pub server_key: String,
    pub admin_key: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// The body if it is JSON; null otherwise.
    pub body: Value,
}

impl Site {
    /// Starts the service with Redis and more flags.
    pub async fn start(db: &TestDb, flags: &[&str]) -> Self {
        Self::of(spawn_serve(db, Some(&redis_url().await), flags).await, db.url())
    }

    /// Wraps a running service on the database at `url`.
    pub fn of(serve: Serve, url: &str) -> Self {
        Self { serve, server_key: make_key(url, "server", &[]), admin_key: make_key(url, "admin", &[]) }
    }

    /// Sends a request unchanged.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let mut request = self.serve.client.request(method, self.serve.at(path)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.timeout(DEADLINE).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        // Leaves endless bodies unread.
        let is_endless = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let text = if is_endless { String::new() } else { response.text().await.unwrap() };
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer { status, headers, text, body }
    }

    /// Reads without a key.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], String::new()).await
    }

    /// Sends a body with the server key, as JSON.
    pub async fn post(&self, path: &str, body: impl ToString) -> Answer {
        self.json(Method::POST, path, &self.server_key, body.to_string()).await
    }

    /// Sends JSON with the admin key; no body if it is null.
    pub async fn admin(&self, method: Method, path: &str, body: Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.json(method, path, &self.admin_key, body).await
    }

    /// Sends JSON with a key. An array for the scores of a board goes to the path for batches.
    pub async fn json(&self, method: Method, path: &str, key: &str, body: String) -> Answer {
        let (path, body) = match path.split_once("/scores") {
            Some((board, rest)) if board.starts_with("/v1/boards/") && body.trim_start().starts_with('[') => {
                (format!("{board}/scores/batch{rest}"), format!(r#"{{"events":{body}}}"#))
            }
            _ => (path.to_owned(), body),
        };
        let authorization = format!("Bearer {key}");
        let headers = [(AUTHORIZATION.as_str(), &*authorization), (CONTENT_TYPE.as_str(), "application/json")];
        self.send(method, &path, &headers, body).await
    }

    /// Creates a `sum` board named `main`, or with other rules, and submits these scores in order.
    pub async fn board(&self, rules: Value, scores: &[(&str, i64)]) {
        let mut board = json!({"slug": "main", "mode": "sum", "lanes": 4});
        board.as_object_mut().unwrap().extend(rules.as_object().cloned().unwrap_or_default());
        let path = format!("/v1/boards/{}/scores", board["slug"].as_str().unwrap());
        self.admin(Method::POST, "/v1/boards", board).await.is(201);
        for (user, points) in scores {
            self.post(&path, json!({"user_id": user, "points": points})).await.is(200);
        }
    }
}

impl Answer {
    /// Returns the body. Fails unless the status is this one.
    #[track_caller]
    pub fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.body
    }
}
