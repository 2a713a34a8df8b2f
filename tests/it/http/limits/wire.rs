//! Raw HTTP, for requests that no client library sends.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use crate::support::{Serve, wait::within};

/// A connection to the service. Its buffer holds bytes that were read but not used yet.
#[derive(Debug)]
pub struct Wire(pub BufReader<TcpStream>);

/// A parsed answer.
#[derive(Debug)]
pub struct RawAnswer {
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    pub body: String,
}

impl RawAnswer {
    /// Returns the value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_default().trim()
    }
}

impl Wire {
    pub async fn to(serve: &Serve) -> Self {
        let place = serve.url.strip_prefix("http://").unwrap();
        Self(BufReader::new(TcpStream::connect(place).await.unwrap()))
    }

    /// Sends text.
    pub async fn send(&mut self, text: &str) -> io::Result<()> {
        self.0.write_all(text.as_bytes()).await
    }

    /// Reads one whole answer.
    pub async fn answer(&mut self) -> RawAnswer {
        answer(&mut self.0).await
    }
}

/// Reads the next whole answer on a connection.
pub async fn answer(stream: &mut (impl AsyncRead + Unpin)) -> RawAnswer {
    let read = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        let mut output = RawAnswer { status: head[9..12].parse().unwrap(), head, body: String::new() };
        let mut body = vec![0; output.header("content-length").parse().unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        output.body = String::from_utf8_lossy(&body).into_owned();
        Ok::<_, io::Error>(output)
    };
    within("an answer", read).await.expect("an answer")
}
