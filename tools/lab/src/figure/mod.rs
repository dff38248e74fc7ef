//! The figures: paper, axes, facts of the paper, how they are measured here, and how the shape is judged.

mod definition;
mod events;
mod latency;
mod moonroute;
mod others;
mod own;
mod ppb;
pub mod shape;
mod switch;
mod tables;
mod vpp;

pub use definition::{Axis, Fact, Figure, Numbers, Point, Scale, Value};
pub use others::skipped_peers;

use crate::error::LabError;

/// All figures that can be measured, in the order of the papers.
pub const FIGURES: [&Figure; 32] = [
    &vpp::OFFERED,
    &vpp::VECTOR_SIZE,
    &events::INSTRUCTIONS,
    &events::PER_CYCLE,
    &events::INSTRUCTION_MISSES,
    &vpp::NODES,
    &vpp::STYLE,
    &vpp::DESTINATIONS,
    &latency::SCENARIOS,
    &vpp::ALLOCATION,
    &switch::DPDK,
    &moonroute::CLOCK,
    &moonroute::CORES,
    &moonroute::TABLE,
    &events::TABLE,
    &moonroute::BATCH,
    &events::BATCH,
    &latency::BATCH,
    &moonroute::MODULES,
    &tables::ROUTERS,
    &tables::HERE_ROUTERS,
    &switch::P2P,
    &switch::P2V,
    &switch::V2V,
    &switch::LOOPBACK,
    &switch::RTT_10,
    &switch::RTT_50,
    &switch::RTT_99,
    &ppb::BATCH,
    &ppb::MISSES,
    &tables::TALK,
    &own::TABLE,
];

/// The figure of a name.
pub fn find(name: &str) -> Option<&'static Figure> {
    FIGURES.into_iter().find(|figure| figure.name == name)
}

/// Check names of figures.
///
/// # Errors
/// If one is unknown.
pub fn known(names: &[String]) -> Result<(), LabError> {
    match names.iter().find(|name| find(name).is_none()) {
        None => Ok(()),
        Some(name) => Err(LabError::Figure {
            name: name.clone(),
            known: FIGURES.map(|f| f.name).join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::Level;
    use crate::meter;

    #[test]
    fn values_to_compare_with_are_at_positions_of_both_lengths() {
        for figure in FIGURES {
            // A quick run may leave out some positions, but not all.
            let all = figure.compared.values.iter().chain(figure.published.values);
            for value in all {
                let points = (figure.points)(Level::Full);
                let is_part = figure.parts.contains(&value.series);
                let of = |p: &&Point| is_part || p.series == value.series;
                let mut of = points.iter().filter(of);
                let found = match figure.is_by_node() {
                    true => of.next().is_some(),
                    false => of.any(|p| p.label == value.label),
                };
                assert!(found, "{} {} {}", figure.name, value.series, value.label);
            }
        }
    }

    #[test]
    fn every_figure_has_points_that_the_benchmark_accepts() {
        for figure in FIGURES {
            assert_eq!(find(figure.name).unwrap().title, figure.title);
            for level in [Level::Smoke, Level::Quick, Level::Full] {
                let points = figure.points_of(level);
                assert!(!points.is_empty(), "{}", figure.name);
                for point in &points {
                    let args = meter::Task::of(&point.args);
                    assert!(args.is_ok(), "{}: {}", figure.name, point.args);
                }
                let mut keys: Vec<_> = points.iter().map(|p| (p.series, p.x as u64)).collect();
                keys.sort_unstable();
                keys.dedup();
                assert_eq!(keys.len(), points.len(), "{}", figure.name);
            }
            let smoke = figure.points_of(Level::Smoke);
            let most = match meter::Task::is_simulated(&smoke[0].args) {
                true => 1,
                false => 2,
            };
            assert!(smoke.len() <= most, "{}", figure.name);
            for numbers in [figure.published, figure.compared] {
                assert_eq!(numbers.values.is_empty(), numbers.source.is_empty());
                for (series, _) in numbers.lines {
                    let has_some = numbers.values.iter().any(|value| value.series == *series);
                    assert!(has_some, "{}: line of {series}", figure.name);
                }
            }
            let has_source = !figure.fact.source.is_empty();
            assert!(
                has_source || !figure.published.source.is_empty(),
                "{}",
                figure.name
            );
        }
        let mut names: Vec<_> = FIGURES.iter().map(|f| f.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len());
        assert!(find("none").is_none());
    }
}
