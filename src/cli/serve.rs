//! `centile serve`: serves HTTP until SIGINT or SIGTERM.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use tokio::{net::TcpSocket, time::timeout};

use crate::{
    Error, Result,
    cli::{output, stop::Stop, with_instance},
    config::{self, Config, InstanceFlags},
    http,
    instance::Instance,
    maintenance::secrets,
};

/// Timeout for shutting down after the last request: writing accepted scores and closing
/// connections.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Listen backlog, subject to the system's limit. With the standard library's 128, clients in a
/// burst of connections would retry only after a second.
const BACKLOG: u32 = 1_024;

/// Serves HTTP until SIGINT or SIGTERM, then finishes the in-flight requests.
///
/// - [`Error::Outage`] if the database is unreachable at startup or shutdown.
/// - [`Error::Conflict`] for another version of the schema, or for an example secret.
/// - [`Error::Invalid`] for an unusable certificate or private key, or if no given master key
///   decrypts a secret.
pub(super) async fn run(config: &Config, serve: &config::Serve) -> Result<()> {
    let mut stop = Stop::listen()?;
    let (settings, http) = (config.for_serving(&serve.instance)?, serve.http()?);
    // Before background tasks start.
    let secrets = with_instance(config, async |instance| {
        secrets::prepare(&instance.store.admin, instance.master_keys.as_deref()).await
    })
    .await?;
    if secrets.in_clear > 0 {
        tracing::warn!(
            webhooks = secrets.in_clear,
            "webhook secrets are stored unencrypted: set CENTILE_MASTER_KEY to encrypt them"
        );
    }
    if settings.redis_url.is_none() {
        tracing::info!("REDIS_URL is not set: instances share no cache");
    }
    let instance = Instance::connect(&settings).await?;
    instance.write_submitted_scores();
    instance.load_indexes(&serve.instance.index_boards, serve.instance.ready_when_indexed).await?;
    let result = serve_http(&serve.instance, http, Arc::clone(&instance), &mut stop).await;
    let shut_down = timeout(SHUTDOWN_TIMEOUT, instance.shut_down()).await;
    result?;
    shut_down.map_err(|_| {
        let message = "PostgreSQL does not answer; accepted scores whose callers have left were not written";
        Error::Outage(message.to_owned())
    })?;
    tracing::info!("stopped");
    Ok(())
}

async fn serve_http(
    flags: &InstanceFlags,
    http: http::Settings,
    instance: Arc<Instance>,
    stop: &mut Stop,
) -> Result<()> {
    let listener = listen(flags.listen)?;
    let address = address(&listener)?;
    let scheme = if http.certificate.is_some() { "https" } else { "http" };
    let server = http::serve(Arc::clone(&instance), listener, http)?;
    let handle = server.handle();
    let mut server = tokio::spawn(server);
    output::print(format!("listening on {scheme}://{address}"))?;
    tracing::info!(%address, scheme, version = env!("CARGO_PKG_VERSION"), "started");
    let ended = tokio::select! {
        signal = stop.wait() => {
            tracing::info!(signal, drain_seconds = flags.drain().as_secs(), "stopping");
            instance.leave();
            // A second signal ends the drain early.
            timeout(flags.drain(), stop.wait()).await.ok();
            handle.stop(true).await;
            server.await
        }
        ended = &mut server => ended,
    };
    match ended {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Error::Internal(format!("the HTTP server failed: {error}"))),
        Err(error) => Err(Error::Internal(format!("the HTTP server failed: {error}"))),
    }
}

/// Binds the listen address. Must be called within a Tokio runtime.
///
/// [`Error::Invalid`] if the address is unavailable.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)?.into_std()
    };
    bind().map_err(|error| {
        Error::invalid("listen", format!("cannot listen on {address}: {error}; choose another address"))
    })
}

pub(super) fn address(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|error| Error::Internal(format!("cannot read the listen address: {error}")))
}
