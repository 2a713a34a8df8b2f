//! Schemas of the enums of the model, for the `OpenAPI` document. The model knows no framework.

use strum::VariantNames;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr,
        schema::{ObjectBuilder, Schema, Type},
    },
};

use crate::model::{
    board::{ArchivedKind, Buckets, Mode, OnViolation, Order, PeriodKind, Reading, SnapshotKind, TiebreakSum, Ties},
    combination::{Aggregate, Join},
    friend::FriendsChange,
    key::Role,
    quarantine::State,
};

macro_rules! schemas {
    ($($type:ty: $description:literal,)*) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                let object = ObjectBuilder::new().schema_type(Type::String).description(Some($description));
                object.enum_values(Some(Self::VARIANTS.iter().copied())).into()
            }
        }

        impl ToSchema for $type {}
    )*};
}

schemas! {
    Mode: "How a player's score in a period follows from the player's score transactions.",
    Order: "Which scores are better.",
    Ties: "How equal scores are ranked.",
    TiebreakSum: "How second numbers combine on a board of sums.",
    Reading: "Access for readers of a board.",
    Buckets: "Rankings that have bucket rows.",
    OnViolation: "Treatment of an event that breaks a rule of its board against cheating.",
    PeriodKind: "Kinds of period.",
    ArchivedKind: "Kinds of period with archives.",
    SnapshotKind: "When the all-time ranking is archived.",
    Join: "Which players of its sources a combined board has.",
    Aggregate: "How the scores of a player in the sources combine.",
    FriendsChange: "How a list of players changes a player's friends.",
    Role: "Permissions of a key.",
    State: "State of an event in quarantine.",
}
