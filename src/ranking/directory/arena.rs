//! The records of the directory, in chunks.

use std::collections::VecDeque;

/// Size of a chunk. Tests use small chunks, so that few operations fill many of them.
pub(super) const CHUNK_BYTES: usize = if cfg!(test) { 2 * 1024 } else { 64 * 1024 };

/// Unit of record addresses: 32-bit addresses reach 16 GiB.
const UNIT_BYTES: usize = 4;

/// Number of addresses in a chunk.
const CHUNK_UNITS: usize = CHUNK_BYTES / UNIT_BYTES;

/// Memory that 32-bit addresses reach, 16 GiB.
pub(super) const ADDRESSABLE_BYTES: usize = (u32::MAX as usize).saturating_mul(UNIT_BYTES);

/// Bytes of a record before its texts: internal id (4), length of external id (1), of name (1), of
/// avatar (2).
const HEADER_BYTES: usize = 8;

/// Avatar length of a record without an avatar.
const NO_AVATAR: u16 = u16::MAX;

/// Longest external id and longest name, in bytes.
const MAX_TEXT_BYTES: u8 = 128;

const MAX_AVATAR_BYTES: usize = 1024;

/// The public data of one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileRef<'a> {
    /// Internal id.
    pub user_id: u32,
    /// The caller's own id, 1 to 128 bytes.
    pub external_id: &'a str,
    /// Name shown in lists, 1 to 128 bytes.
    pub name: &'a str,
    /// Avatar, at most 1,024 bytes.
    pub avatar: Option<&'a str>,
}

/// A queue of chunks that hold records in the order of their puts.
///
/// Addresses count units of [`UNIT_BYTES`] and wrap around. The distance from `first` gives the
/// chunk.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pub(super) chunks: VecDeque<Vec<u8>>,
    /// Address of the oldest chunk.
    pub(super) first: u32,
}

impl Arena {
    pub(super) fn record(&self, address: u32) -> Record<'_> {
        let distance = address.wrapping_sub(self.first) as usize;
        Record(&self.chunks[distance / CHUNK_UNITS][distance % CHUNK_UNITS * UNIT_BYTES..])
    }

    /// Returns the bytes by which a record of this size makes the arena grow.
    pub(super) fn growth(&self, size: usize) -> usize {
        if self.chunks.back().is_some_and(|chunk| chunk.len() + size <= CHUNK_BYTES) { 0 } else { CHUNK_BYTES }
    }

    /// Appends a record and returns its address.
    pub(super) fn append(&mut self, header: [u8; HEADER_BYTES], profile: &ProfileRef<'_>) -> u32 {
        let size = Record(&header).size();
        if self.growth(size) > 0 {
            self.chunks.push_back(Vec::with_capacity(CHUNK_BYTES));
        }
        let full_chunks = self.chunks.len() - 1;
        let chunk = &mut self.chunks[full_chunks];
        let address = self.first.wrapping_add(units(full_chunks * CHUNK_BYTES + chunk.len()));
        let end = chunk.len() + size;
        chunk.extend_from_slice(&header);
        chunk.extend_from_slice(profile.external_id.as_bytes());
        chunk.extend_from_slice(profile.name.as_bytes());
        chunk.extend_from_slice(profile.avatar.unwrap_or_default().as_bytes());
        chunk.resize(end, 0);
        address
    }

    /// Removes the oldest chunk and returns it with its address.
    pub(super) fn pop(&mut self) -> Option<(u32, Vec<u8>)> {
        let chunk = self.chunks.pop_front()?;
        let address = self.first;
        self.first = address.wrapping_add(units(CHUNK_BYTES));
        Some((address, chunk))
    }
}

/// Converts a distance within the arena from bytes to units.
#[expect(clippy::cast_possible_truncation, reason = "the arena is smaller than 16 GiB")]
pub(super) fn units(bytes: usize) -> u32 {
    (bytes / UNIT_BYTES) as u32
}

/// The bytes from the start of a record onwards: header, external id, name, avatar.
#[derive(Clone, Copy)]
pub(super) struct Record<'a>(pub(super) &'a [u8]);

impl<'a> Record<'a> {
    pub(super) fn user_id(self) -> u32 {
        u32::from_le_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    pub(super) fn external_id(self) -> &'a [u8] {
        &self.0[HEADER_BYTES..][..usize::from(self.0[4])]
    }

    fn name_bytes(self) -> usize {
        usize::from(self.0[5])
    }

    fn avatar_bytes(self) -> Option<usize> {
        let bytes = u16::from_le_bytes([self.0[6], self.0[7]]);
        (bytes != NO_AVATAR).then_some(usize::from(bytes))
    }

    /// Returns the size of the whole record, padded to the unit of addresses.
    pub(super) fn size(self) -> usize {
        let texts = usize::from(self.0[4]) + self.name_bytes() + self.avatar_bytes().unwrap_or(0);
        (HEADER_BYTES + texts).next_multiple_of(UNIT_BYTES)
    }

    pub(super) fn profile(self) -> Option<ProfileRef<'a>> {
        let external_id = self.external_id();
        let (name, rest) = self.0[HEADER_BYTES + external_id.len()..].split_at(self.name_bytes());
        Some(ProfileRef {
            user_id: self.user_id(),
            external_id: str::from_utf8(external_id).ok()?,
            name: str::from_utf8(name).ok()?,
            avatar: match self.avatar_bytes() {
                Some(bytes) => Some(str::from_utf8(&rest[..bytes]).ok()?),
                None => None,
            },
        })
    }
}

/// Builds the header of a profile's record. Returns `None` if a text is empty or too long.
pub(super) fn header(profile: &ProfileRef<'_>) -> Option<[u8; HEADER_BYTES]> {
    let text_bytes = |text: &str| u8::try_from(text.len()).ok().filter(|bytes| (1..=MAX_TEXT_BYTES).contains(bytes));
    let avatar_bytes = match profile.avatar {
        Some(avatar) if avatar.len() > MAX_AVATAR_BYTES => return None,
        Some(avatar) => u16::try_from(avatar.len()).ok()?,
        None => NO_AVATAR,
    };
    let [id_0, id_1, id_2, id_3] = profile.user_id.to_le_bytes();
    let [avatar_0, avatar_1] = avatar_bytes.to_le_bytes();
    Some([id_0, id_1, id_2, id_3, text_bytes(profile.external_id)?, text_bytes(profile.name)?, avatar_0, avatar_1])
}
