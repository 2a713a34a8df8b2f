//! HTTP over TLS: the certificate that an instance shows, taken up anew when its files change, and the stream below a connection's requests.

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

/// How often the files are read again. Whoever renews a certificate has nothing to tell the service.
pub(crate) const RENEWED_EVERY: Duration = Duration::from_secs(2);

/// What is offered and taken of protocols above TLS (RFC 7301).
const HTTP_1: &[u8] = b"http/1.1";

/// Bytes that a connection keeps of an answer until the client takes them: as many as come at a time (see [`crate::http::server::chunks`]).
const WAITING_BYTES: usize = 32 << 10;

/// A certificate that proves to clients whom they talk to, and the files that it came from.
pub struct Certificate {
    chain_file: PathBuf,
    key_file: PathBuf,
    shown: RwLock<Arc<CertifiedKey>>,
    /// Why the files could not be taken when they were last looked at.
    complaint: Mutex<Option<String>>,
}

impl Certificate {
    /// Reads a certificate with those that lead from it to its authority, the server's own first, and its private key, both PEM.
    /// [`Error::Invalid`] that names the flag and the file at fault.
    pub fn read(chain_file: PathBuf, key_file: PathBuf) -> Result<Self> {
        let shown = RwLock::new(Arc::new(read(&chain_file, &key_file)?));
        Ok(Self { chain_file, key_file, shown, complaint: Mutex::default() })
    }

    /// Shows what is in the files now. While that cannot be taken, the certificate of before goes on being shown.
    pub(crate) fn renew(&self) {
        let complaint = match read(&self.chain_file, &self.key_file) {
            Ok(found) => {
                let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
                if shown.cert != found.cert {
                    *shown = Arc::new(found);
                    tracing::info!(file = %self.chain_file.display(), "a new certificate is shown");
                }
                None
            }
            Err(error) => Some(error.to_string()),
        };
        let mut last = self.complaint.lock().unwrap_or_else(PoisonError::into_inner);
        // Once, not every time that it is looked at.
        if let Some(error) = &complaint
            && last.as_ref() != Some(error)
        {
            tracing::error!(%error, "the certificate cannot be renewed, the one of before goes on being shown");
        }
        *last = complaint;
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
        Some(Arc::clone(&self.shown.read().unwrap_or_else(PoisonError::into_inner)))
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
        return Err(refused("tls_cert", chain_file, &"holds no certificate: there has to be one in PEM"));
    }

    let text = text("tls_key", key_file)?;
    if text.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED) {
        let why = "holds a key that is encrypted, and nobody is asked for its passphrase: decrypt it with openssl pkey";
        return Err(refused("tls_key", key_file, &why));
    }
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => refused("tls_key", key_file, &"holds no private key: there has to be one in PEM"),
        error => refused("tls_key", key_file, &format!("is damaged: {error}")),
    })?;

    CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            let why = format!("is not the key of the first certificate in {}", chain_file.display());
            refused("tls_key", key_file, &why)
        }
        rustls::Error::InvalidCertificate(_) => {
            refused("tls_cert", chain_file, &"holds something that is not a certificate")
        }
        error => refused("tls_key", key_file, &format!("cannot be used: {error}")),
    })
}

/// What stands in PEM of a key with a passphrase, in the old form and in PKCS #8.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// What makes streams of connections that show this certificate: TLS 1.2 and 1.3, and HTTP/1.1 above them.
pub(crate) fn acceptor(certificate: Arc<Certificate>) -> Result<TlsAcceptor> {
    let config = ServerConfig::builder_with_provider(Arc::new(provider())).with_safe_default_protocol_versions();
    let config = config.map_err(|error| Error::Internal(format!("cannot prepare TLS: {error}")))?;
    let mut config = config.with_no_client_auth().with_cert_resolver(certificate);
    config.alpn_protocols = vec![HTTP_1.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// What a connection's requests come and its answers go through. With TLS, whoever reads first waits for the handshake: so it has to be made
/// in the time for the first request's head.
pub(crate) enum Stream {
    /// As it is.
    Clear(TcpStream),
    /// TLS, which is being agreed upon.
    Handshake(Box<Accept<TcpStream>>),
    /// TLS.
    Tls(Box<TlsStream<TcpStream>>),
    /// Closed, because no TLS came about.
    Refused,
}

impl Stream {
    /// Whether the connection uses TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        !matches!(self, Self::Clear(_))
    }

    /// The stream of a connection that was just made.
    pub(crate) fn new(stream: TcpStream, acceptor: Option<&TlsAcceptor>) -> Self {
        match acceptor {
            None => Self::Clear(stream),
            Some(acceptor) => {
                let limited = |tls: &mut rustls::ServerConnection| tls.set_buffer_limit(Some(WAITING_BYTES));
                Self::Handshake(Box::new(acceptor.accept_with(stream, limited)))
            }
        }
    }

    /// The stream of a connection that came to nothing before it began: once that is dropped it is reset.
    pub(crate) fn refused(stream: &TcpStream) -> Self {
        stream.set_zero_linger().ok();
        Self::Refused
    }

    /// Has the system forget what the client has not taken, and reset the connection once this is dropped.
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

    /// Ready once there is no handshake to be waited for, however it ended.
    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Self::Handshake(handshake) = self {
            *self = match ready!(Pin::new(&mut **handshake).poll(context)) {
                Ok(tls) => Self::Tls(Box::new(tls)),
                Err(error) => {
                    // Not those who go away again, as checks of a port do.
                    if error.kind() == io::ErrorKind::InvalidData {
                        tracing::debug!(%error, "no TLS came about");
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
                // A client that goes without a word. HTTP itself tells where a body ends.
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

    /// What is encrypted already may wait for the client.
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
            // Closed by being dropped.
            Self::Handshake(_) | Self::Refused => Poll::Ready(Ok(())),
        }
    }
}
