//! Explanation of a rank.

/// A step in the computation of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainStep {
    /// Meaning of the result.
    pub what: String,
    pub value: Option<String>,
    /// Duration of its statement in milliseconds, planning included.
    pub time_ms: f64,
    /// The statement to repeat it in psql.
    pub statement: Option<String>,
}
