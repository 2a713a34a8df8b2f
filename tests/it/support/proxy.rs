//! A proxy in front of a server whose connections a test can cut.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Duration, Instant, sleep_until},
};

/// Delay of a distant server's bytes, in each direction.
const DISTANCE: Duration = Duration::from_millis(10);

/// The state of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Bytes are forwarded.
    Open,
    /// Nothing is forwarded and no error is sent, like a firewall that has forgotten the
    /// connection. New connections are accepted and get no answer.
    Silent,
    /// Like [`Self::Silent`], but only connections opened before this time. New ones work.
    SilentBefore(Instant),
    /// Every connection is reset, including new ones.
    Reset,
    /// Bytes are forwarded after 10 ms, as between two regions.
    Distant,
}

impl Way {
    /// Returns whether nothing is forwarded on a connection that was opened at this time.
    fn silences(self, opened_at: Instant) -> bool {
        match self {
            Self::Silent => true,
            Self::SilentBefore(time) => opened_at < time,
            _ => false,
        }
    }
}

/// Accepts connections to a server. Ends with all its connections when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    way: watch::Sender<Way>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts an open proxy to the server at `port` on loopback.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (way, output) = watch::channel(Way::Open);
        let accepting = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(near, port, output.clone()));
            }
        });
        Self { address, way, accepting }
    }

    /// Returns `url` with the proxy's address in place of the server's.
    pub fn instead(&self, url: &str) -> String {
        let (before, rest) = url.split_once('@').unwrap();
        let (_, after) = rest.split_once('/').unwrap();
        format!("{before}@{}/{after}", self.address)
    }

    /// Returns the URL of a Redis behind the proxy.
    pub fn redis_url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Sets the proxy's state.
    pub fn set(&self, way: Way) {
        self.way.send_replace(way);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.set(Way::Reset);
    }
}

/// Forwards one connection until it ends.
async fn carry(near: TcpStream, port: u16, mut way: watch::Receiver<Way>) {
    let opened_at = Instant::now();
    // Closing sends a reset.
    near.set_zero_linger().unwrap();
    if way.wait_for(|way| !way.silences(opened_at)).await.is_err() || *way.borrow() == Way::Reset {
        return;
    }
    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    far.set_zero_linger().unwrap();
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = pump(near_in, far_out, way.clone(), opened_at) => {}
        () = pump(far_in, near_out, way.clone(), opened_at) => {}
        _ = way.wait_for(|way| *way == Way::Reset) => {}
    }
}

/// Forwards bytes in one direction while the proxy is open.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: watch::Receiver<Way>, opened_at: Instant) {
    let (sender, mut queue) = mpsc::unbounded_channel();
    let reading_way = way.clone();
    let reading = async move {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let due_at = (*reading_way.borrow() == Way::Distant).then(|| Instant::now() + DISTANCE);
            sender.send((due_at, buffer[..length].to_vec())).unwrap();
        }
        // `writing` ends once the queue is empty.
        drop(sender);
        std::future::pending::<()>().await;
    };
    let writing = async {
        while let Some((due_at, bytes)) = queue.recv().await {
            if let Some(due_at) = due_at {
                sleep_until(due_at).await;
            }
            if way.wait_for(|way| !way.silences(opened_at)).await.is_err() || to.write_all(&bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
}
