//! The command `plan`: what to change, as whole runs.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::convert::find_target;
use super::super::estimate::verdict;
use super::super::what;
use super::link;
use headroom_advice::planner::{self, Full, Plan, Plans, Speed, Unlock};
use headroom_advice::{Locks, Results};
use headroom_base::document::Document;
use headroom_base::units::Seconds;
use headroom_core::estimate::{Estimate, Fit};
use headroom_io::export;
use headroom_scenario::settings::{self, Setting};
use headroom_scenario::{Problem, Scenario};

/// At most three plans; if nothing fits, what to unlock.
pub(crate) fn plan(args: &Args) -> Result<Answer, Refusal> {
    let scenario = what::scenario(args)?;
    let kept = kept(args)?;
    let target = args.option("program").map(find_target).transpose()?;
    let runs = |run: &Scenario| target.is_none_or(|target| can_run(target, run));
    let locks = Locks {
        most: most(args)?,
        kept: &kept,
        accepts: Some(&runs),
    };
    let plans = planner::plan(&scenario, locks)?;
    let mut answer = Answer::new(text(&plans), &document(&scenario, &plans));
    answer.fits = plans.fits();
    Ok(answer)
}

fn can_run(target: &export::Target, run: &Scenario) -> bool {
    (target.write)(run, &Estimate::default()).is_ok()
}

/// `--allow CLASS`: up to this class of changes of results.
fn most(args: &Args) -> Result<Results, Refusal> {
    let mut most = Locks::default().most;
    for (at, id) in args.all("allow").enumerate() {
        let Some(class) = Results::from_id(id) else {
            let all: Vec<&str> = Results::ALL.iter().map(|class| class.id()).collect();
            return Err(Problem::new("--allow", id, format!("one of {}", all.join(", "))).into());
        };
        most = if at == 0 { class } else { most.max(class) };
    }
    Ok(most)
}

/// `--keep SETTING`: settings that no plan changes.
fn kept(args: &Args) -> Result<Vec<&'static Setting>, Refusal> {
    let all = args.all("keep");
    let all = all.flat_map(|names| names.split(',').map(str::trim));
    all.map(|name| settings::named(name).ok_or_else(|| settings::unknown(name, "").into()))
        .collect()
}

fn document(run: &Scenario, plans: &Plans) -> Document {
    let now = Document::new()
        .with("device", band(plans.now.estimate.device))
        .with("fits", fits(plans.now.estimate.fit()))
        .with("step_seconds", plans.now.seconds);
    let all = plans.plans.iter().map(|plan| of_plan(run, plan));
    let unlock = plans.unlock.iter().map(|row| of_unlock(run, row));
    Document::new()
        .with("now", now)
        .with("plans", Document::List(all.collect()))
        .with("unlock", Document::List(unlock.collect()))
        .with("cards", Document::List(Vec::new()))
}

fn of_unlock(run: &Scenario, row: &Unlock) -> Document {
    of_plan(run, &row.plan)
        .with("unlocks", row.id.as_str())
        .with("text", row.text.as_str())
}

fn of_plan(run: &Scenario, plan: &Plan) -> Document {
    let changes = plan.changes.iter().map(|change| {
        Document::new()
            .with("id", change.id.as_str())
            .with("text", change.text.as_str())
            .with("device_after", change.after.device())
            .with("seconds_after", seconds(&change.after))
            .with("why", change.why.as_str())
    });
    Document::new()
        .with("id", plan.id.id())
        .with("link", link(&plan.full.scenario))
        .with("changes", Document::List(changes.collect()))
        .with("device", band(plan.full.estimate.device))
        .with("fits", fits(plan.full.estimate.fit()))
        .with("step_seconds", seconds(&plan.full))
        .with("results", plan.results.label())
        .with("programs", programs(run, plan))
}

fn seconds(full: &Full) -> Option<f64> {
    full.time.as_ref().map(|time| time.step.expected.get())
}

/// `true`, `"probably"` or `false`; null if the GPU's memory is unknown.
fn fits(fit: Option<Fit>) -> Document {
    match fit {
        Some(Fit::Fits) => true.into(),
        Some(Fit::Probably) => "probably".into(),
        Some(Fit::ProbablyNot | Fit::No) => false.into(),
        None => Document::Null,
    }
}

/// The programs that can run the plan and have a setting for each of its changes.
fn programs(run: &Scenario, plan: &Plan) -> Vec<String> {
    let able = export::targets().iter().filter(|target| {
        let mut before = run;
        can_run(target, &plan.full.scenario)
            && plan.changes.iter().all(|change| {
                let after = &change.after.scenario;
                let expressed = target.change(before, after).is_expressed();
                before = after;
                expressed
            })
    });
    able.map(|target| target.id.into()).collect()
}

fn text(plans: &Plans) -> String {
    let now = &plans.now;
    let mut text = format!("as it is: {}", verdict(&now.estimate));
    if let Some(seconds) = now.seconds {
        text.push_str(&format!("; a step takes {}", Seconds::new(seconds)));
    }
    text.push('\n');
    for plan in &plans.plans {
        text.push('\n');
        text.push_str(&format!("{}: {}\n", plan.id.label(), summary(plans, plan)));
        lines(plan, &mut text);
    }
    if !plans.fits() {
        text.push_str("\nnothing fits without changing what is trained");
        if plans.unlock.is_empty() {
            text.push_str(", and no such change that Headroom knows is enough\n");
        } else {
            text.push_str("; the least that must be unlocked (--allow changes):\n");
        }
        for row in &plans.unlock {
            text.push_str(&format!("\n{}: {}\n", row.text, summary(plans, &row.plan)));
            lines(&row.plan, &mut text);
        }
    }
    text
}

fn lines(plan: &Plan, text: &mut String) {
    for (at, change) in (1..).zip(&plan.changes) {
        text.push_str(&format!("  {at}. {}: {}\n", change.text, change.why));
    }
    if plan.changes.is_empty() {
        text.push_str("  nothing to change\n");
    }
    text.push_str(&format!(
        "  results: {}\n  {}\n",
        plan.results.label(),
        link(&plan.full.scenario)
    ));
}

/// What a plan needs and how long its step takes, compared with the run as it is.
fn summary(plans: &Plans, plan: &Plan) -> String {
    let needs = verdict(&plan.full.estimate);
    let Some(after) = seconds(&plan.full) else {
        return needs;
    };
    let shown = Seconds::new(after);
    let compared = plans.now.seconds.map_or(String::new(), |before| {
        match planner::speed(before, after) {
            Speed::Alike => ", about as fast as now".into(),
            Speed::Faster => format!(", {:.2} × as fast as now", before / after),
            Speed::Slower => format!(", {:.2} × as long as now", after / before),
        }
    });
    format!("{needs}; a step takes {shown}{compared}")
}
