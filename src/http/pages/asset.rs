//! Files that pages load. Their names contain a digest of the content, so that browsers may keep
//! them forever.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use crate::{http::pages::gzip, model::key};

#[derive(Debug)]
pub(crate) struct Asset {
    /// Name with the digest of the content.
    name: String,
    pub(crate) digest: String,
    pub(crate) media_type: &'static str,
    pub(crate) text: &'static str,
    pub(crate) compressed: Option<Vec<u8>>,
}

pub(crate) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("centile", "css", "text/css; charset=utf-8", include_str!("assets/centile.css")));

/// Script that makes a board's page live and reformats numbers for the browser's language.
pub(crate) static SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("centile", "js", "text/javascript; charset=utf-8", include_str!("assets/centile.js")));

pub(crate) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("centile", "svg", "image/svg+xml", include_str!("assets/centile.svg")));

/// Additional style sheet of a board in a frame.
pub(crate) static EMBED_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("embed", "css", "text/css; charset=utf-8", include_str!("assets/embed.css")));

/// Additional style sheet of the operator's page.
pub(crate) static OPS_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("ops", "css", "text/css; charset=utf-8", include_str!("assets/ops.css")));

/// Script that tells the embedding page the height of the frame's content.
pub(crate) static FRAME_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("frame", "js", "text/javascript; charset=utf-8", include_str!("assets/frame.js")));

/// Script that defines the element `<centile-board>`.
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

    pub(crate) fn path(&self) -> String {
        format!("/assets/{}", self.name)
    }

    /// Finds a file by its name. The name of another version finds this version.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        [&*STYLE, &*SCRIPT, &*ICON, &*EMBED_STYLE, &*FRAME_SCRIPT, &*OPS_STYLE]
            .into_iter()
            .find(|asset| asset.is_version_of(name))
    }

    /// Returns whether `name` belongs to this file, in any version.
    pub(crate) fn is_version_of(&self, name: &str) -> bool {
        let Some((stem, kind)) = self.name.split_once(&*self.digest) else { return false };
        let digest = name.strip_prefix(stem).and_then(|rest| rest.strip_suffix(kind));
        digest.is_some_and(|digest| {
            digest.len() == self.digest.len() && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    }
}
