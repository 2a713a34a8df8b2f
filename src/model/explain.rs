//! Steps of the explanation of a rank.

/// A step on the way to a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What is found out.
    pub what: String,
    /// What it is.
    pub value: Option<String>,
    /// Milliseconds that its statement took, planning included.
    pub time_ms: f64,
    /// The statement that gives it, for psql.
    pub statement: Option<String>,
}
