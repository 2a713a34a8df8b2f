//! The service over HTTP.

pub mod alerts;
pub mod api;
pub mod browser;
pub mod clients;
pub mod concurrency;
pub mod dimensions;
pub mod embed;
pub mod errors;
pub mod export;
pub mod injection;
pub mod instances;
pub mod limits;
pub mod logging;
pub mod metadata;
pub mod metrics;
pub mod openapi;
pub mod ops;
pub mod pages;
pub mod presentation;
pub mod property;
pub mod second;
pub mod segments;
pub mod stop;
pub mod templates;
pub mod tiers;
pub mod tls;
