//! A small HTTP server that answers messages as its script says. It uses threads, so that a test
//! can wait for a command meanwhile.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead as _, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Barrier, Mutex, mpsc},
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
};

use crate::support::wait::DEADLINE;

/// The answer to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This status.
    Status(u16),
    /// 200, once as many requests have arrived as the barrier waits for.
    Together(Arc<Barrier>),
    /// None: the connection is closed.
    Close,
    /// None: the connection is closed once the test reaches the barrier.
    Held(Arc<Barrier>),
    /// None: the connection stays open.
    Hang,
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Request {
    /// `POST /hook HTTP/1.1`
    pub line: String,
    /// By name in lower case.
    pub headers: BTreeMap<String, String>,
    /// The raw bytes.
    pub body: Vec<u8>,
}

#[derive(Debug)]
pub struct Receiver {
    /// The address that accepts messages.
    pub url: String,
    requests: mpsc::Receiver<Request>,
}

impl Receiver {
    /// Answers the requests in order with `script`, and all later ones with 200.
    pub fn start(script: &[Answer]) -> Self {
        Self::serve("http", script, |stream| Box::new(stream))
    }

    /// Like [`Receiver::start`], over TLS, with the certificate of `receiver.pem`.
    pub fn start_tls() -> Self {
        let certificate = CertificateDer::from(&include_bytes!("receiver.der")[..]);
        let key = PrivatePkcs8KeyDer::from(&include_bytes!("receiver-key.der")[..]);
        let config = ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key.into())
            .unwrap();
        let config = Arc::new(config);
        Self::serve("https", &[], move |stream| {
            Box::new(StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream))
        })
    }

    fn serve(scheme: &str, script: &[Answer], wrap: impl Fn(TcpStream) -> Box<dyn Stream> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}/hook", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(script.iter().cloned().collect::<VecDeque<_>>()));
        let (sender, requests) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (stream, sender, answers) = (wrap(stream), sender.clone(), Arc::clone(&answers));
                thread::spawn(move || {
                    // The client may have been killed, or have refused the certificate.
                    answer(stream, &sender, &answers).ok();
                });
            }
        });
        Self { url, requests }
    }

    /// Waits for the next request.
    pub fn next(&self) -> Request {
        self.requests.recv_timeout(DEADLINE).expect("a message arrives")
    }

    /// Returns all received requests that were not read yet.
    pub fn all(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

/// A plain or a TLS connection.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

fn answer(
    stream: Box<dyn Stream>,
    requests: &mpsc::Sender<Request>,
    script: &Mutex<VecDeque<Answer>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let line = lines.remove(0);
    let headers: BTreeMap<String, String> =
        lines.iter().filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_lowercase(), v.to_owned())).collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let next = script.lock().unwrap().pop_front().unwrap_or(Answer::Status(200));
    // Reported before the answer, so that the consequences of the answer come later.
    requests.send(Request { line, headers, body }).ok();
    match next {
        Answer::Close => Ok(()),
        Answer::Held(barrier) => {
            barrier.wait();
            Ok(())
        }
        Answer::Hang => stream.read_to_end(&mut Vec::new()).map(|_| ()),
        Answer::Together(barrier) => {
            barrier.wait();
            respond(stream.get_mut(), 200)
        }
        Answer::Status(status) => respond(stream.get_mut(), status),
    }
}

fn respond(stream: &mut dyn Stream, status: u16) -> std::io::Result<()> {
    let location = if status / 100 == 3 { "Location: http://127.0.0.1:1/elsewhere\r\n" } else { "" };
    let head = format!("HTTP/1.1 {status} Whatever\r\n{location}Content-Length: 2\r\n\r\n{{}}");
    stream.write_all(head.as_bytes())?;
    stream.flush()
}
