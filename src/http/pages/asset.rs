//! Files that pages ask for. Their names change with what is in them, so that browsers need never ask for one again.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use crate::{http::pages::gzip, model::key};

/// A file.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its name, with what stands for its bytes in it.
    name: String,
    /// What stands for its bytes.
    pub(crate) digest: String,
    /// Media type.
    pub(crate) media_type: &'static str,
    /// What is in it.
    pub(crate) text: &'static str,
    /// The same as gzip.
    pub(crate) compressed: Option<Vec<u8>>,
}

/// Looks of all pages.
pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("centile", "css", "text/css; charset=utf-8", include_str!("assets/centile.css")));

/// What makes a board's page live, and writes numbers and times as the reader's browser has it.
pub(crate) static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("centile", "js", "text/javascript; charset=utf-8", include_str!("assets/centile.js")));

/// The sign on a browser's tab.
pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("centile", "svg", "image/svg+xml", include_str!("assets/centile.svg")));

/// Looks of a board within pages of others, beside those of all pages.
pub(crate) static EMBED_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("embed", "css", "text/css; charset=utf-8", include_str!("assets/embed.css")));

/// Looks of the operator's page, beside those of all pages.
pub(crate) static OPS_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("ops", "css", "text/css; charset=utf-8", include_str!("assets/ops.css")));

/// What tells the page around a frame how high the frame's page is.
pub(crate) static FRAME_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("frame", "js", "text/javascript; charset=utf-8", include_str!("assets/frame.js")));

/// What makes `<centile-board>` of a page.
pub(crate) static ELEMENT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("centile-board", "js", "text/javascript; charset=utf-8", include_str!("assets/centile-board.js"))
});

impl Asset {
    fn new(name: &str, kind: &str, media_type: &'static str, text: &'static str) -> Self {
        let digest = key::hex(&Sha256::digest(text)[..8]);
        Self {
            name: format!("{name}.{digest}.{kind}"),
            digest,
            media_type,
            text,
            compressed: gzip::small(text.as_bytes()),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> String {
        format!("/assets/{}", self.name)
    }

    /// The file of this name, or the one that stands for it here where another version of this program has another one.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        [&*STYLE, &*SCRIPT, &*ICON, &*EMBED_STYLE, &*FRAME_SCRIPT, &*OPS_STYLE]
            .into_iter()
            .find(|asset| asset.is_version_of(name))
    }

    /// Whether the name is this file's, whatever may be in it.
    pub(crate) fn is_version_of(&self, name: &str) -> bool {
        let Some((stem, kind)) = self.name.split_once(&*self.digest) else { return false };
        let digest = name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(kind));
        digest.is_some_and(|digest| {
            digest.len() == self.digest.len() && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }
}
