//! Random bytes for secrets.

use rand::{TryRng as _, rngs::SysRng};

use crate::{Error, Result};

/// Returns random bytes from the operating system.
pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    SysRng.try_fill_bytes(&mut bytes).map_err(|error| Error::Internal(format!("cannot read random bytes: {error}")))?;
    Ok(bytes)
}
