//! The numbers of `/metrics`, read back from its text: so a page shows what a dashboard does.

use std::collections::BTreeMap;

/// All numbers, in the order in which they stand in the text.
#[derive(Debug)]
pub(crate) struct Numbers(Vec<Sample>);

/// One number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    /// What it is.
    pub(crate) value: f64,
}

impl Sample {
    /// The text of a label; empty where there is no such label.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(name, value)| self.label(name) == *value)
    }
}

/// A histogram: how many there were, their sum, and how many were within each bound.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Histogram {
    /// How many.
    pub(crate) count: f64,
    /// Their sum.
    pub(crate) sum: f64,
    /// Bounds from the least, without the last, which is none; how many are not above each.
    bounds: Vec<(f64, f64)>,
}

impl Histogram {
    /// The least of the bounds within which so large a part of them is; `None` where it is not within the last, or there are none.
    pub(crate) fn within(&self, part: f64) -> Option<f64> {
        let enough = self.count * part;
        let is_enough = |(_, count): &&(f64, f64)| self.count > 0.0 && *count >= enough;
        self.bounds.iter().find(is_enough).map(|(bound, _)| *bound)
    }

    /// The largest bound.
    pub(crate) fn last(&self) -> Option<f64> {
        self.bounds.last().map(|(bound, _)| *bound)
    }
}

impl Numbers {
    /// Reads the text format of Prometheus, as this program writes it.
    pub(crate) fn read(text: &str) -> Self {
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect())
    }

    /// The numbers of this name that have these labels among theirs.
    pub(crate) fn of<'a>(&'a self, name: &'a str, labels: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Sample> {
        self.0.iter().filter(move |sample| sample.name == name && sample.has(labels))
    }

    /// Their sum; nothing is 0.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.of(name, labels).fold(0.0, |sum, sample| sum + sample.value)
    }

    /// The histogram of this name, over all that have these labels among theirs.
    pub(crate) fn histogram(&self, name: &str, labels: &[(&str, &str)]) -> Histogram {
        let mut bounds = Vec::<(f64, f64)>::new();
        for sample in self.of(&format!("{name}_bucket"), labels) {
            let Some(bound) = sample.label("le").parse().ok().filter(|bound: &f64| bound.is_finite()) else { continue };
            match bounds.iter_mut().find(|(known, _)| known.total_cmp(&bound).is_eq()) {
                Some((_, count)) => *count += sample.value,
                None => bounds.push((bound, sample.value)),
            }
        }
        bounds.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let part = |part: &str| self.sum(&format!("{name}_{part}"), labels);
        Histogram { count: part("count"), sum: part("sum"), bounds }
    }
}

/// `name{label="text",…} value`.
fn sample(line: &str) -> Option<Sample> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = match series.split_once('{') {
        Some((name, rest)) => (name, labels(rest.strip_suffix('}')?)?),
        None => (series, BTreeMap::new()),
    };
    Some(Sample { name: name.to_owned(), labels, value: value.parse().ok()? })
}

/// `label="text",…`, where a text may hold anything, a route's braces for instance; `\` stands before what would end it.
fn labels(mut rest: &str) -> Option<BTreeMap<String, String>> {
    let mut labels = BTreeMap::new();
    while let Some((name, text)) = rest.split_once("=\"") {
        let (mut value, mut characters) = (String::new(), text.char_indices());
        let end = loop {
            match characters.next()? {
                (end, '"') => break end,
                (_, '\\') => match characters.next()? {
                    (_, 'n') => value.push('\n'),
                    (_, other) => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.insert(name.trim_start_matches(',').to_owned(), value);
        rest = &text[end + 1..];
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP requests Requests.
# TYPE requests counter
requests{method="GET",route="/v1/boards/{board}",status="200"} 7
requests{method="GET",route="/v1/boards/{board}",status="404"} 2
requests{method="PUT",route="a \"b\", c=\"d\" \\ } e",status="200"} 1

waiting 3
took_bucket{route="a",le="0.001"} 5
took_bucket{route="a",le="0.01"} 9
took_bucket{route="a",le="+Inf"} 10
took_sum{route="a"} 0.5
took_count{route="a"} 10
took_bucket{route="b",le="0.001"} 0
took_bucket{route="b",le="0.01"} 30
took_bucket{route="b",le="+Inf"} 30
took_sum{route="b"} 0.25
took_count{route="b"} 30
"#;

    #[test]
    fn numbers_are_found_by_name_and_labels() {
        let numbers = Numbers::read(TEXT);
        let sum = |name: &str, labels: &[(&str, &str)]| numbers.sum(name, labels).to_string();
        assert_eq!(sum("waiting", &[]), "3");
        assert_eq!(sum("requests", &[]), "10");
        assert_eq!(sum("requests", &[("route", "/v1/boards/{board}")]), "9");
        assert_eq!(sum("requests", &[("route", "/v1/boards/{board}"), ("status", "404")]), "2");
        assert_eq!(sum("requests", &[("method", "DELETE")]), "0");
        let odd: Vec<_> = numbers.of("requests", &[("method", "PUT")]).map(|sample| sample.label("route")).collect();
        assert_eq!(odd, [r#"a "b", c="d" \ } e"#]);
    }

    #[test]
    fn a_part_is_within_the_least_bound_that_holds_it() {
        let numbers = Numbers::read(TEXT);
        let a = numbers.histogram("took", &[("route", "a")]);
        assert_eq!((a.within(0.5), a.within(0.9), a.within(0.99)), (Some(0.001), Some(0.01), None));
        let both = numbers.histogram("took", &[]);
        assert_eq!((both.count.to_string(), both.sum.to_string()), ("40".into(), "0.75".into()));
        assert_eq!((both.within(0.1), both.within(0.5), both.within(0.99)), (Some(0.001), Some(0.01), None));
        assert_eq!(numbers.histogram("none", &[]).within(0.5), None);
    }
}
