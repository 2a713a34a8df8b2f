//! What becomes of score events: outcomes, and the entries that they change. Pure, without I/O and without a clock.

mod decide;
mod entry;
mod facts;
mod refusal;
mod rules;
#[cfg(test)]
mod tests;
