//! A client that reads an export slowly and detects a truncated one.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use crate::support::Serve;

/// A request whose response has begun. The client reads the rest only on demand.
#[derive(Debug)]
pub struct Slow {
    stream: TcpStream,
    head: String,
    /// Bytes of the body that are already read.
    read: Vec<u8>,
}

/// The received part of the body.
#[derive(Debug)]
pub struct Taken {
    pub text: String,
    /// Whether the last chunk arrived.
    pub is_whole: bool,
}

impl Slow {
    /// Sends the request and reads the response's head. The receive buffer is small, so that little
    /// data is in flight.
    pub async fn ask(serve: &Serve, path: &str) -> Self {
        Self::ask_with(serve, path, 4096).await
    }

    /// As [`Self::ask`], with a receive buffer of this size.
    pub async fn ask_with(serve: &Serve, path: &str, receive_bytes: u32) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(receive_bytes).unwrap();
        let place = serve.url.strip_prefix("http://").unwrap();
        let mut stream = socket.connect(place.parse().unwrap()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        Self { stream, head, read: Vec::new() }
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> &str {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap()
    }

    /// Reads `size` bytes at a time, `times` times, waiting in between.
    pub async fn read_slowly(&mut self, size: usize, every: Duration, times: usize) {
        let mut ticks = tokio::time::interval(every);
        for _ in 0..times {
            ticks.tick().await;
            let mut part = vec![0; size];
            self.stream.read_exact(&mut part).await.expect("more of the file");
            self.read.append(&mut part);
        }
    }

    /// Reads the rest of the response.
    pub async fn rest(&mut self) -> Taken {
        let (mut bytes, mut part) = (std::mem::take(&mut self.read), vec![0; 65_536]);
        let mut text = Vec::new();
        loop {
            // A reset also ends the body.
            let length = self.stream.read(&mut part).await.unwrap_or(0);
            bytes.extend_from_slice(&part[..length]);
            let mut from = 0;
            while let Some((size, begin)) = chunk(&bytes[from..]) {
                if size == 0 {
                    return Taken { text: String::from_utf8(text).unwrap(), is_whole: true };
                }
                if bytes.len() < from + begin + size + 2 {
                    break;
                }
                text.extend_from_slice(&bytes[from + begin..from + begin + size]);
                from += begin + size + 2;
            }
            bytes.drain(..from);
            if length == 0 {
                if let Some((_, begin)) = chunk(&bytes) {
                    text.extend_from_slice(&bytes[begin..]);
                }
                // A chunk may end within a character, a complete file may not.
                return Taken { text: String::from_utf8_lossy(&text).into_owned(), is_whole: false };
            }
        }
    }
}

/// Returns the length of the first chunk in these bytes, and where its data begin.
fn chunk(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let size = std::str::from_utf8(&bytes[..end]).ok()?;
    Some((usize::from_str_radix(size, 16).unwrap(), end + 2))
}
