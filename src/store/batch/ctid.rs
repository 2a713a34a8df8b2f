//! PostgreSQL's type `tid`, which sqlx lacks.

use sqlx::{
    Decode, Encode, Postgres,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef, types::Oid},
};

/// A `ctid`: where a row version is in its table. Valid until the row changes or VACUUM FULL moves
/// it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ctid {
    page: u32,
    item: u16,
}

/// OIDs of the types `tid` and `tid[]`, the same in every database.
const TID: PgTypeInfo = PgTypeInfo::with_oid(Oid(27));
const TID_ARRAY: PgTypeInfo = PgTypeInfo::with_oid(Oid(1010));

impl sqlx::Type<Postgres> for Ctid {
    fn type_info() -> PgTypeInfo {
        TID
    }
}

impl PgHasArrayType for Ctid {
    fn array_type_info() -> PgTypeInfo {
        TID_ARRAY
    }
}

impl<'r> Decode<'r, Postgres> for Ctid {
    fn decode(value: PgValueRef<'r>) -> std::result::Result<Self, BoxDynError> {
        let (page, item) = value.as_bytes()?.split_at_checked(4).ok_or("a ctid is too short")?;
        Ok(Self { page: u32::from_be_bytes(page.try_into()?), item: u16::from_be_bytes(item.try_into()?) })
    }
}

impl Encode<'_, Postgres> for Ctid {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> std::result::Result<IsNull, BoxDynError> {
        buffer.extend(&self.page.to_be_bytes());
        buffer.extend(&self.item.to_be_bytes());
        Ok(IsNull::No)
    }
}
