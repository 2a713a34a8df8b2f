//! HTTP server of the alternatives, on the same actix-web with as many workers. It has the paths and
//! parameters of Centile's API that the load uses, and the response fields that a game needs.

use std::{fs, io::Write as _, net::TcpListener, path::PathBuf, time::Duration};

use actix_web::{
    App, HttpResponse, HttpServer,
    error::ErrorInternalServerError,
    http::header::ContentType,
    web::{Bytes, Data, Path, Query, ServiceConfig, get, post, resource},
};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::{
    peers::{
        Event, Peer, PeerResult, Row, buckets::Buckets, plain::Plain, redis::RedisClient, sorted_sets::SortedSets,
    },
    system::System,
};

/// Arguments of an alternative's server
#[derive(Debug, Args)]
pub struct Serving {
    /// Alternative to serve
    #[arg(long, hide = true)]
    serve: Option<System>,

    #[arg(long, env = "DATABASE_URL", hide = true, hide_env_values = true, default_value = "")]
    database_url: String,

    #[arg(long, env = "REDIS_URL", hide = true, hide_env_values = true, default_value = "")]
    redis_url: String,

    /// File with the body of the constant response
    #[arg(long, hide = true)]
    body: Option<PathBuf>,

    /// Lanes of the batched ledger
    #[arg(long, hide = true, default_value_t = 1)]
    lanes: usize,
}

impl Serving {
    /// Serves if this process was started as a server. Returns whether it was.
    pub async fn run(&self) -> PeerResult<bool> {
        let Some(system) = self.serve else { return Ok(false) };
        let served = match system {
            System::Constant => {
                let body = Bytes::from(fs::read(self.body.as_deref().ok_or("no body file")?)?);
                listen(move |config| {
                    let body = body.clone();
                    let answer = move || {
                        let body = body.clone();
                        async move { HttpResponse::Ok().content_type(ContentType::json()).body(body) }
                    };
                    config.service(resource("/v1/boards/{board}/scores").route(get().to(answer)));
                })
                .await
            }
            System::Plain => peer(Plain::new(&self.database_url)?).await,
            System::Buckets => peer(Buckets::new(&self.database_url).await?).await,
            System::SortedSets => peer(self.sorted_sets(RedisClient::Pool, None).await?).await,
            System::SortedSetsBatched => {
                peer(self.sorted_sets(RedisClient::Multiplexed, Some(self.lanes)).await?).await
            }
            System::Centile => Err("Centile has its own server".into()),
        };
        served?;
        Ok(true)
    }

    async fn sorted_sets(&self, client: RedisClient, lanes: Option<usize>) -> PeerResult<SortedSets> {
        SortedSets::new(&self.database_url, &self.redis_url, client, lanes).await
    }
}

/// Serves a peer until this process ends.
async fn peer<P: Peer>(peer: P) -> PeerResult<()> {
    let peer = Data::new(peer);
    listen(move |config| {
        config
            .app_data(peer.clone())
            .service(resource("/v1/boards/{board}/scores").route(get().to(page::<P>)).route(post().to(write::<P>)))
            .service(resource("/v1/boards/{board}/scores/batch").route(post().to(write_batch::<P>)))
            .service(resource("/v1/boards/{board}/scores/{user}").route(get().to(standing::<P>)));
    })
    .await
}

/// Starts a server like that of `centile serve`, and prints its address in the same way.
async fn listen(configure: impl Fn(&mut ServiceConfig) + Clone + Send + 'static) -> PeerResult<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let server = HttpServer::new(move || App::new().configure(configure.clone()))
        .workers(std::thread::available_parallelism()?.get())
        .keep_alive(Duration::from_secs(75))
        .listen(listener)?
        .run();
    let mut out = std::io::stdout();
    writeln!(out, "listening on http://{address}")?;
    out.flush()?;
    Ok(server.await?)
}

#[derive(Deserialize)]
struct StandingQuery {
    around: Option<i64>,
}

async fn standing<P: Peer>(
    peer: Data<P>,
    path: Path<(String, String)>,
    query: Query<StandingQuery>,
) -> actix_web::Result<HttpResponse> {
    let (_, user) = path.into_inner();
    let standing = peer.standing(user, query.around.unwrap_or(4)).await.map_err(ErrorInternalServerError)?;
    Ok(standing.map_or_else(|| HttpResponse::NotFound().finish(), |standing| HttpResponse::Ok().json(standing)))
}

#[derive(Deserialize)]
struct PageQuery {
    from: Option<i64>,
    limit: Option<i64>,
}

#[derive(Serialize)]
struct PageResponse {
    data: Vec<Row>,
}

async fn page<P: Peer>(peer: Data<P>, query: Query<PageQuery>) -> actix_web::Result<HttpResponse> {
    let (from, limit) = (query.from.unwrap_or(1), query.limit.unwrap_or(10));
    let rows = peer.page(from, limit).await.map_err(ErrorInternalServerError)?;
    Ok(HttpResponse::Ok().json(PageResponse { data: rows }))
}

/// The result of an event.
#[derive(Serialize)]
struct AcceptedResponse {
    state: &'static str,
    score: i64,
}

impl From<i64> for AcceptedResponse {
    fn from(score: i64) -> Self {
        Self { state: "accepted", score }
    }
}

#[derive(Serialize)]
struct BatchResponse {
    results: Vec<AcceptedResponse>,
}

#[derive(Deserialize)]
struct BatchRequest {
    events: Vec<Event>,
}

async fn write_batch<P: Peer>(peer: Data<P>, body: Bytes) -> actix_web::Result<HttpResponse> {
    let BatchRequest { events } = serde_json::from_slice(&body)?;
    let scores = peer.write(events).await.map_err(ErrorInternalServerError)?;
    let results = scores.into_iter().map(AcceptedResponse::from).collect();
    Ok(HttpResponse::Ok().json(BatchResponse { results }))
}

async fn write<P: Peer>(peer: Data<P>, body: Bytes) -> actix_web::Result<HttpResponse> {
    let event: Event = serde_json::from_slice(&body)?;
    let scores = peer.write(vec![event]).await.map_err(ErrorInternalServerError)?;
    Ok(HttpResponse::Ok().json(scores.into_iter().map(AcceptedResponse::from).next()))
}
