//! A service to talk to.

use reqwest::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap},
};
use serde_json::{Value, json};

use crate::support::{Serve, TestDb, make_key, redis_url, spawn_serve, wait::DEADLINE};

/// A service with a database of its own, and a key of each role.
#[derive(Debug)]
pub struct Site {
    pub serve: Serve,
    pub server_key: String,
    pub admin_key: String,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    /// The body, where it is JSON; null otherwise.
    pub body: Value,
}

impl Site {
    /// Starts the service with Redis and more flags.
    pub async fn start(db: &TestDb, flags: &[&str]) -> Self {
        Self::of(spawn_serve(db, Some(&redis_url().await), flags).await, db.url())
    }

    /// A service that runs already, on the database at `url`.
    pub fn of(serve: Serve, url: &str) -> Self {
        Self { serve, server_key: make_key(url, &["--role", "server"]), admin_key: make_key(url, &["--role", "admin"]) }
    }

    /// Sends a request as it is given.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: String) -> Answer {
        let mut request = self.serve.client.request(method, self.serve.at(path)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.timeout(DEADLINE).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        // What has no end is left unread.
        let is_endless = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
        let text = if is_endless { String::new() } else { response.text().await.unwrap() };
        let body = serde_json::from_str(&text).unwrap_or_default();
        Answer { status, headers, text, body }
    }

    /// Reads, as anyone may.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], String::new()).await
    }

    /// Sends JSON, or what is meant to be JSON, with the server key.
    pub async fn post(&self, path: &str, body: impl ToString) -> Answer {
        self.json(Method::POST, path, &self.server_key, body.to_string()).await
    }

    /// As an administrator. No body when it is null.
    pub async fn admin(&self, method: Method, path: &str, body: Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.json(method, path, &self.admin_key, body).await
    }

    /// Sends JSON with a key.
    pub async fn json(&self, method: Method, path: &str, key: &str, body: String) -> Answer {
        let authorization = format!("Bearer {key}");
        let headers = [(AUTHORIZATION.as_str(), &*authorization), (CONTENT_TYPE.as_str(), "application/json")];
        self.send(method, path, &headers, body).await
    }

    /// Makes a `sum` board named `main`, or with other rules, and gives it these scores, the first player's first.
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
    /// The body, if this is the status.
    #[track_caller]
    pub fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        self.body
    }
}
