//! Plots: throughput as bars, ranks among growing numbers of players as lines.

use std::path::Path;

use plotters::prelude::*;

use crate::{
    cell::Cell,
    common::BenchResult,
    report::{Record, Results, number},
    system::System,
};

const FONT: &str = "sans-serif";
/// Width of a panel, and the start and maximum end of its bars.
const PANEL: (u32, i32, i32) = (480, 160, 400);
/// Height of a bar with padding, and of a title.
const ROW: i32 = 24;
const TITLE: i32 = 34;

fn color(system: System) -> RGBColor {
    match system {
        System::Constant => RGBColor(170, 170, 170),
        System::Plain => RGBColor(148, 103, 189),
        System::Buckets => RGBColor(44, 140, 80),
        System::SortedSets => RGBColor(214, 90, 70),
        System::SortedSetsBatched => RGBColor(230, 160, 60),
        System::Centile => RGBColor(31, 100, 180),
    }
}

/// Draws both plots into a folder.
pub fn draw(results: &Results, out: &Path) -> BenchResult<()> {
    throughput(results, &out.join("throughput.svg")).map_err(|error| format!("throughput.svg: {error}"))?;
    if results.growth.iter().map(|growth| growth.players).collect::<std::collections::BTreeSet<_>>().len() > 1 {
        growth(results, &out.join("growth.svg")).map_err(|error| format!("growth.svg: {error}"))?;
    }
    Ok(())
}

/// Draws a panel per cell, because top lists are a thousand times as frequent as bulk writes.
fn throughput(results: &Results, file: &Path) -> BenchResult<()> {
    let mut cells: Vec<Cell> = results.cells.iter().map(|record| record.cell).collect();
    cells.dedup();
    let rows = u32::try_from(cells.len().div_ceil(2))?;
    let bars = cells.iter().map(|cell| of(results, *cell).count()).max().unwrap_or_default();
    let height = u32::try_from(TITLE + 16 + ROW * i32::try_from(bars)?)?;
    let root = SVGBackend::new(file, (2 * PANEL.0, rows.max(1) * height)).into_drawing_area();
    root.fill(&WHITE)?;
    let panels = root.split_evenly((usize::try_from(rows.max(1))?, 2));
    for (cell, panel) in cells.iter().zip(&panels) {
        let what = if cell.writes() { "scores/s" } else { "requests/s" };
        panel.draw(&Text::new(
            format!("{}, {what}", cell.title()),
            (16, 10),
            (FONT, 16).into_font().style(FontStyle::Bold),
        ))?;
        let most = of(results, *cell).map(rate).fold(0.0, f64::max);
        for (n, record) in of(results, *cell).enumerate() {
            let top = TITLE + ROW * i32::try_from(n)?;
            let (_, from, to) = PANEL;
            #[expect(clippy::cast_possible_truncation, reason = "within the plot")]
            let length = (f64::from(to - from) * rate(record) / most.max(f64::MIN_POSITIVE)).max(1.0) as i32;
            let bar = [(from, top + 3), (from + length, top + ROW - 3)];
            panel.draw(&Rectangle::new(bar, color(record.system).filled()))?;
            panel.draw(&Text::new(record.system.title(), (16, top + 5), (FONT, 13)))?;
            panel.draw(&Text::new(number(rate(record)), (from + length + 6, top + 5), (FONT, 13)))?;
        }
    }
    root.present()?;
    Ok(())
}

fn of(results: &Results, cell: Cell) -> impl Iterator<Item = &Record> {
    results.cells.iter().filter(move |record| record.cell == cell)
}

fn rate(record: &Record) -> f64 {
    record.middle(|figures| figures.per_second)
}

/// Draws ranks on logarithmic axes: a cost proportional to the players is a rising line, a constant
/// cost a level line.
fn growth(results: &Results, file: &Path) -> BenchResult<()> {
    let points: Vec<(System, f64, f64)> = results
        .growth
        .iter()
        .map(|growth| (growth.system, growth.players as f64, growth.middle(|figures| figures.p50_ms)))
        .filter(|(_, _, ms)| *ms > 0.0)
        .collect();
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (fewest, most) = bounds(&mut points.iter().map(|(_, players, _)| *players));
    let (quickest, slowest) = bounds(&mut points.iter().map(|(_, _, ms)| *ms));
    let root = SVGBackend::new(file, (800, 400)).into_drawing_area();
    root.fill(&WHITE)?;
    let (picture, names) = root.split_horizontally(620);
    let mut chart = ChartBuilder::on(&picture)
        .caption("Rank of a random player, one caller: p50 in ms", (FONT, 16).into_font().style(FontStyle::Bold))
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d((fewest / 1.15..most * 1.15).log_scale(), (quickest / 2.0..slowest * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("players")
        .x_label_formatter(&|players| number(*players))
        .y_label_formatter(&|ms| format!("{ms}"))
        .light_line_style(RGBColor(240, 240, 240))
        .label_style((FONT, 13))
        .draw()?;
    let mut systems: Vec<System> = points.iter().map(|(system, ..)| *system).collect();
    systems.sort_unstable();
    systems.dedup();
    for (n, system) in systems.into_iter().enumerate() {
        let line: Vec<_> =
            points.iter().filter(|point| point.0 == system).map(|(_, players, ms)| (*players, *ms)).collect();
        let style = color(system).stroke_width(if system == System::Centile { 3 } else { 2 });
        chart.draw_series(LineSeries::new(line, style).point_size(4))?;
        // Place the legend where it covers no line.
        let y = 60 + ROW * i32::try_from(n)?;
        names.draw(&PathElement::new([(8, y + 6), (28, y + 6)], style))?;
        names.draw(&Text::new(system.title(), (36, y), (FONT, 13)))?;
    }
    root.present()?;
    Ok(())
}
