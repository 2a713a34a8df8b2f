//! A way to a server that a test can cut.

use std::net::{Ipv4Addr, SocketAddr};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinHandle,
};

/// What becomes of what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It arrives.
    Open,
    /// Nothing arrives and nothing is said, as behind a firewall that has forgotten the connection. New connections are taken, and
    /// get no answer.
    Silent,
    /// Every connection is reset, and every new one.
    Reset,
}

/// Listens for whoever wants to reach a server. Ends, with all connections, when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    way: watch::Sender<Way>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// The way to the server at `port` on loopback, open.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (way, told) = watch::channel(Way::Open);
        let accepting = tokio::spawn(async move {
            loop {
                let (near, _) = listener.accept().await.unwrap();
                tokio::spawn(carry(near, port, told.clone()));
            }
        });
        Self { address, way, accepting }
    }

    /// `url` with this way in place of the server's own address.
    pub fn instead(&self, url: &str) -> String {
        let (before, rest) = url.split_once('@').unwrap();
        let (_, after) = rest.split_once('/').unwrap();
        format!("{before}@{}/{after}", self.address)
    }

    /// From now on this becomes of what is sent.
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

/// One connection, to its end.
async fn carry(near: TcpStream, port: u16, mut way: watch::Receiver<Way>) {
    // Closing is a reset.
    near.set_zero_linger().unwrap();
    if way.wait_for(|way| *way != Way::Silent).await.is_err() || *way.borrow() == Way::Reset {
        return;
    }
    let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return };
    far.set_zero_linger().unwrap();
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        () = pump(near_in, far_out, way.clone()) => {}
        () = pump(far_in, near_out, way.clone()) => {}
        _ = way.wait_for(|way| *way == Way::Reset) => {}
    }
}

/// Carries bytes one way, while it is open.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut way: watch::Receiver<Way>) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if way.wait_for(|way| *way != Way::Silent).await.is_err() || to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
