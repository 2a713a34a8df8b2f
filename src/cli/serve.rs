//! `centile serve`: answers HTTP until it is told to stop.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use tokio::{net::TcpSocket, time::timeout};

use crate::{
    Error, Result,
    cli::{output, stop::Stop, with_service},
    config::{self, Config, InstanceFlags},
    http,
    instance::Instance,
    maintenance::secrets,
};

/// How long what is left may take once the last request is answered, or was given up: scores without a caller, connections.
const SHUT_DOWN: Duration = Duration::from_secs(30);

/// Connections that may wait to be taken, where the system allows as many. With the 128 of the standard library a crowd that comes at once
/// waits a second for its next try.
const QUEUE: u32 = 1_024;

/// Serves with the database and Redis of the settings. Ends well on SIGINT or SIGTERM, once the requests under way are
/// answered; [`Error::Unavailable`] when there is no database, or it has gone when this is to end, [`Error::Conflict`] when its schema is
/// another one, or a secret an example; [`Error::Invalid`] when secrets are sealed with a master key that is not among those given, or the
/// certificate or its key cannot be taken.
pub(super) async fn run(config: &Config, serve: &config::Serve) -> Result<()> {
    let mut stop = Stop::listen()?;
    let (settings, http) = (config.for_serving(&serve.instance)?, serve.http()?);
    // Before anything is done in the background.
    let secrets =
        with_service(config, async |instance| secrets::prepare(&instance.store, instance.master_keys.as_deref()).await)
            .await?;
    if secrets.in_clear > 0 {
        tracing::warn!(
            webhooks = secrets.in_clear,
            "secrets of webhooks are kept in clear: set CENTILE_MASTER_KEY to have them sealed"
        );
    }
    if settings.redis_url.is_none() {
        tracing::info!("no REDIS_URL: the in-process cache is used; several instances share nothing but the database");
    }
    let instance = Instance::connect(&settings).await?;
    instance.load_indexes(&serve.instance.index_boards, serve.instance.ready_when_indexed).await?;
    let result = answer(&serve.instance, http, Arc::clone(&instance), &mut stop).await;
    let shut_down = timeout(SHUT_DOWN, instance.shut_down()).await;
    result?;
    shut_down.map_err(|_| {
        Error::unavailable("PostgreSQL does not answer; scores that nobody waits for any more were given up")
    })?;
    tracing::info!("stopped");
    Ok(())
}

async fn answer(flags: &InstanceFlags, http: http::Settings, instance: Arc<Instance>, stop: &mut Stop) -> Result<()> {
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
            // Whoever is in a hurry asks again.
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

/// Binds the address that is to be served on. [`Error::Invalid`] when it cannot be had. Must be called within a runtime.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener> {
    let bind = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(QUEUE)?.into_std()
    };
    bind()
        .map_err(|error| Error::invalid("listen", format!("cannot listen on {address}: {error}; give another address")))
}

/// The address that `listener` was given.
pub(super) fn address(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|error| Error::Internal(format!("cannot read the address listened on: {error}")))
}
