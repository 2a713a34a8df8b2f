//! Straight lines through measured points.

/// The line y = a + b x with the least squares.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    a: f64,
    b: f64,
    /// Largest distance of a point, as a share of the point.
    pub deviation: f64,
}

impl Line {
    /// Returns the line through the points. A single point gives a level line.
    pub fn through(points: &[(f64, f64)]) -> Self {
        let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / points.len() as f64;
        let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
        let covariance: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum();
        let variance: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
        let b = if variance > 0.0 { covariance / variance } else { 0.0 };
        let line = Self { a: y_mean - b * x_mean, b, deviation: 0.0 };
        let distances = points.iter().map(|(x, y)| ((line.at(*x) - y) / y).abs());
        Self { deviation: distances.fold(0.0, f64::max), ..line }
    }

    pub fn at(&self, x: f64) -> f64 {
        self.a + self.b * x
    }

    /// Returns the formula, with the name of x.
    pub fn formula(&self, x: &str) -> String {
        let sign = |value: f64| if value < 0.0 { "−" } else { "" };
        let (b, plus) = (self.b.abs(), if self.b < 0.0 { "−" } else { "+" });
        format!("{}{:.3} {plus} {b:.3} × {x}", sign(self.a), self.a.abs())
    }
}
