//! Fragmentation over many steps.

use headroom_base::units::{Bytes, UnitStyle};

pub const MANY_STEPS: &str = "Fragmentation over many steps";
pub const MANY_STEPS_ABOUT: &str = "Replays batches with the sizes of your data through the allocator: memory it holds beyond what is allocated \
     is fragmentation.";

pub fn many_steps(count: usize, allocated: Bytes, held: Bytes) -> String {
    let ratio = held.get() as f64 / allocated.get().max(1) as f64;
    format!("Over {count} steps the allocator reserves {ratio:.2} times what is allocated.")
}

pub fn step_fails(step: usize, retries: u64) -> String {
    let step = format!("On this GPU step {step} runs out of memory");
    match retries {
        0 => format!("{step}."),
        _ => format!(
            "{step}, after the allocator freed its cache {}.",
            times(retries)
        ),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        _ => format!("{count} times"),
    }
}

pub fn steps_run(retries: u64) -> String {
    match retries {
        0 => "On this GPU all of them run.".into(),
        _ => format!(
            "On this GPU all of them run; the allocator frees its cache {}.",
            times(retries)
        ),
    }
}

pub fn steps_axis(points: &[(Bytes, f64, bool)], units: UnitStyle) -> Option<String> {
    let most = points.iter().map(|point| point.0).max()?;
    let (_, unit) = units.scale(most);
    Some(format!(
        "{unit} reserved (dark) and allocated (light), by step"
    ))
}
