//! HTTPS: the certificate, which is reloaded when its files change, and the stream of a connection.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, RwLock},
    task::{Context, Poll, ready},
    time::Duration,
};

use rustls::{
    InconsistentKeys, ServerConfig,
    crypto::{CryptoProvider, ring},
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject as _},
    },
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{Accept, TlsAcceptor, server::TlsStream};

use crate::{Error, Result, telemetry};

/// Interval between two reads of the files, so that a renewed certificate needs no restart.
pub(crate) const RENEWED_EVERY: Duration = Duration::from_secs(2);

/// The only protocol above TLS (RFC 7301).
const HTTP_1: &[u8] = b"http/1.1";

/// Bytes of a response that a connection buffers: one chunk (see [`crate::http::server::chunks`]).
const WAITING_BYTES: usize = 32 << 10;

/// A certificate with its key, and the files of both.
pub struct Certificate {
    chain_file: PathBuf,
    key_file: PathBuf,
    current: RwLock<Arc<CertifiedKey>>,
    /// The error of the last read.
    last_error: Mutex<Option<String>>,
}

impl Certificate {
    /// Reads a certificate chain, the server's certificate first, and its private key, both PEM.
    /// [`Error::Invalid`] names the flag and the file at fault.
    pub fn read(chain_file: PathBuf, key_file: PathBuf) -> Result<Self> {
        let current = RwLock::new(Arc::new(read(&chain_file, &key_file)?));
        Ok(Self { chain_file, key_file, current, last_error: Mutex::default() })
    }

    /// Reloads the files. If they are invalid, the current certificate stays in use.
    pub(crate) fn renew(&self) {
        let error = match read(&self.chain_file, &self.key_file) {
            Ok(found) => {
                let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
                if current.cert != found.cert {
                    *current = Arc::new(found);
                    tracing::info!(file = %self.chain_file.display(), "a new certificate is in use");
                }
                None
            }
            Err(error) => Some(error.to_string()),
        };
        let mut last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        // Logged once per error, not at every read.
        if let Some(error) = &error
            && last.as_ref() != Some(error)
        {
            tracing::error!(%error, "the certificate cannot be renewed; the previous one stays in use");
        }
        *last = error;
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("chain_file", &self.chain_file)
            .field("key_file", &self.key_file)
            .finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(chain_file: &Path, key_file: &Path) -> Result<CertifiedKey> {
    let text = |flag, file: &Path| {
        fs::read(file).map_err(|error| Error::invalid(flag, format!("{} cannot be read: {error}", file.display())))
    };
    let refused = |flag, file: &Path, why: &dyn fmt::Display| Error::invalid(flag, format!("{} {why}", file.display()));

    let chain = CertificateDer::pem_slice_iter(&text("tls_cert", chain_file)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| refused("tls_cert", chain_file, &format!("is damaged: {error}")))?;
    if chain.is_empty() {
        return Err(refused("tls_cert", chain_file, &"contains no certificate in PEM"));
    }

    let text = text("tls_key", key_file)?;
    if text.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED) {
        let why = "holds an encrypted key, and Centile asks for no passphrase: decrypt it with openssl pkey";
        return Err(refused("tls_key", key_file, &why));
    }
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => refused("tls_key", key_file, &"contains no private key in PEM"),
        error => refused("tls_key", key_file, &format!("is damaged: {error}")),
    })?;

    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let why = format!("is not the key of the first certificate in {}", chain_file.display());
            refused("tls_key", key_file, &why)
        }
        rustls::Error::InvalidCertificate(_) => {
            refused("tls_cert", chain_file, &"contains data that is not a certificate")
        }
        error => refused("tls_key", key_file, &format!("cannot be used: {error}")),
    })
}

/// Marks a key with a passphrase in PEM, in the old form and in PKCS #8.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Accepts TLS 1.2 and 1.3 with this certificate, and HTTP/1.1 above them.
pub(crate) fn acceptor(certificate: Arc<Certificate>) -> Result<TlsAcceptor> {
    let config = ServerConfig::builder_with_provider(Arc::new(provider())).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Error::Internal(format!("cannot prepare TLS: {error}")))?;
    let mut config = config.with_no_client_auth().with_cert_resolver(certificate);
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The transport of a connection. The first read waits for the handshake, so the timeout of the
/// first head covers it.
pub(crate) enum Stream {
    Clear(TcpStream),
    Handshake(Box<Accept<TcpStream>>),
    Tls(Box<TlsStream<TcpStream>>),
    /// Closed without TLS.
    Refused,
}

impl Stream {
    pub(crate) fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Clear(_))
    }

    pub(crate) fn new(stream: TcpStream, acceptor: Option<&TlsAcceptor>) -> Self {
        match acceptor {
            None => Self::Clear(stream),
            Some(acceptor) => {
                let limited = |tls: &mut rustls::ServerConnection| tls.set_buffer_limit(Some(WAITING_BYTES));
                Self::Handshake(Box::new(acceptor.accept_with(stream, limited)))
            }
        }
    }

    /// The stream of a refused connection, which is reset when `stream` is dropped.
    pub(crate) fn refused(stream: &TcpStream) -> Self {
        stream.set_zero_linger().ok();
        Self::Refused
    }

    /// Makes the system discard unsent data, and reset the connection when this is dropped.
    pub(crate) fn abandon(&self) {
        let stream = match self {
            Self::Clear(stream) => Some(stream),
            Self::Handshake(handshake) => handshake.get_ref(),
            Self::Tls(tls) => Some(tls.get_ref().0),
            Self::Refused => None,
        };
        if let Some(stream) = stream {
            stream.set_zero_linger().ok();
        }
    }

    /// Ready when the handshake has ended, even after a failure.
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Self::Handshake(handshake) = self {
            *self = match ready!(Pin::new(&mut **handshake).poll(context)) {
                Ok(tls) => Self::Tls(Box::new(tls)),
                Err(error) => {
                    // A port check that only disconnects is not a failure.
                    if error.kind() == io::ErrorKind::InvalidData {
                        tracing::debug!(%error, "a TLS handshake failed");
                        telemetry::count_cut_connection("handshake");
                    }
                    Self::Refused
                }
            };
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_handshake(context));
        match this {
            Self::Clear(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(tls) => match ready!(Pin::new(&mut **tls).poll_read(context, buffer)) {
                // A client that disconnects without close_notify. HTTP itself marks the end of a
                // body.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                read => Poll::Ready(read),
            },
            Self::Handshake(_) | Self::Refused => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_handshake(context));
        match this {
            Self::Clear(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(tls) => Pin::new(&mut **tls).poll_write(context, bytes),
            Self::Handshake(_) | Self::Refused => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Some encrypted data may still wait for the client.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(tls) => Pin::new(&mut **tls).poll_flush(context),
            Self::Handshake(_) | Self::Refused => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(tls) => Pin::new(&mut **tls).poll_shutdown(context),
            // Closed when dropped.
            Self::Handshake(_) | Self::Refused => Poll::Ready(Ok(())),
        }
    }
}
