//! The command `plan`: what to change, as whole runs.

use super::super::answer::{Answer, Refusal, band};
use super::super::args::Args;
use super::super::convert::find_target;
use super::super::estimate::verdict;
use super::super::what::Given;
use super::link;
use headroom_advice::planner::{
    self, Accepts, Full, OnCards, Plan, Plans, Reach, Reached, Speed, Unlock,
};
use headroom_advice::{Locks, Results};
use headroom_base::document::Document;
use headroom_base::units::Seconds;
use headroom_core::estimate::{Estimate, Fit};
use headroom_io::export::{self, Startable};
use headroom_reader::Wanted;
use headroom_scenario::settings::{self, Setting};
use headroom_scenario::{Problem, Scenario};

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    Fits,
    Faster,
    Reach(Reach),
    Cards,
}

impl Aim {
    const ALL: [(&'static str, Self); 5] = [
        ("fits", Self::Fits),
        ("faster", Self::Faster),
        ("batch", Self::Reach(Reach::Batch)),
        ("length", Self::Reach(Reach::Length)),
        ("cards", Self::Cards),
    ];

    /// `--goal`, or what the sentence asks for.
    fn of(args: &Args, wanted: Option<Wanted>) -> Result<Self, Refusal> {
        let Some(id) = args.option("goal") else {
            return Ok(match wanted {
                None => Self::Fits,
                Some(Wanted::Batch) => Self::Reach(Reach::Batch),
                Some(Wanted::Length) => Self::Reach(Reach::Length),
                Some(Wanted::Cards | Wanted::Cheapest) => Self::Cards,
            });
        };
        let known = Self::ALL.iter().find(|(name, _)| *name == id);
        known.map(|(_, aim)| *aim).ok_or_else(|| {
            Problem::unknown_choice("--goal", id, &Self::ALL.map(|(name, _)| name)).into()
        })
    }
}

/// At most three plans; if nothing fits, what to unlock and on which GPUs it runs.
pub(crate) fn plan(given: &Given, args: &Args) -> Result<Answer, Refusal> {
    let target = args.option("program").map(find_target).transpose()?;
    let locks = Locks {
        most: most(args)?,
        kept: kept(args)?,
        goal: super::goal(args)?,
        accepts: Some(match target {
            Some(target) => Accepts::strictly(move |run| can_run(target, run)),
            None => runnable(),
        }),
    };
    let run = match target {
        Some(target) => {
            let found = target.startable(given.scenario());
            found.ok_or_else(|| Refusal::from(target.problems(given.scenario())))?
        }
        None => given.scenario().clone().into(),
    };
    let mut answer = match Aim::of(args, given.wanted)? {
        Aim::Reach(what) => farthest(&run, what, &locks),
        aim => whole_runs(&run, aim, &locks),
    }?;
    if let Some(line) = target.and_then(|target| run.line(target.title)) {
        answer.text.insert_str(0, &(line + "\n"));
    }
    Ok(answer)
}

fn whole_runs(run: &Startable, aim: Aim, locks: &Locks) -> Result<Answer, Refusal> {
    let scenario = &run.scenario;
    let mut plans = planner::plan(scenario, locks.clone())?;
    if let (Aim::Faster, Some(now)) = (aim, plans.now.seconds) {
        let faster = |plan: &Plan| planner::speed(now, plan.full.seconds) == Speed::Faster;
        plans.plans.retain(faster);
        plans
            .plans
            .sort_by(|a, b| a.full.seconds.total_cmp(&b.full.seconds));
    }
    let fewest = (aim == Aim::Cards)
        .then(|| planner::fewest_gpus(scenario, MOST_GPUS, locks))
        .flatten();
    let cards = if aim == Aim::Cards || !plans.fits() && aim == Aim::Fits {
        planner::cards(scenario, locks)
    } else {
        Vec::new()
    };
    let mut text = text(&plans, aim);
    for (gpus, gpu, plan) in fewest.iter().map(on_own).chain(cards.iter().map(on_cards)) {
        text.push_str(&format!("\n{gpus} × {gpu}: {}\n", needs(plan)));
        lines(plan, &mut text);
    }
    let row = |(gpus, gpu, plan): (u32, &str, &Plan)| {
        of_plan(scenario, plan).with("gpu", gpu).with("gpus", gpus)
    };
    let rows = cards.iter().map(on_cards).map(row).collect();
    let document = document(run, &plans)
        .with("fewest", fewest.as_ref().map(on_own).map(row))
        .with("cards", Document::List(rows));
    let mut answer = Answer::new(text, &document);
    answer.fits = plans.fits() || fewest.is_some();
    Ok(answer)
}

/// The most GPUs of a kind of which the fewest are looked for.
const MOST_GPUS: u32 = 1024;

fn on_own(plan: &Plan) -> (u32, &str, &Plan) {
    let hardware = &plan.full.scenario.hardware;
    (hardware.gpus, &hardware.gpu, plan)
}

fn on_cards(row: &OnCards) -> (u32, &str, &Plan) {
    (row.gpus, row.gpu, &row.plan)
}

/// The largest batch or length over which some plan fits.
fn farthest(run: &Startable, what: Reach, locks: &Locks) -> Result<Answer, Refusal> {
    let found = planner::reach(&run.scenario, what, locks)?;
    let Some(Reached { value, plans }) = found else {
        let text = format!("no {} fits, whatever the plan\n", what.label());
        let document = Document::new()
            .with("value", Document::Null)
            .with("plans", Document::List(Vec::new()));
        let mut answer = Answer::new(text, &document);
        answer.fits = false;
        return Ok(answer);
    };
    let text = format!(
        "largest {}: {value}\n\n{}",
        what.label(),
        text(&plans, Aim::Fits)
    );
    let document = document(run, &plans).with("value", value);
    Ok(Answer::new(text, &document))
}

/// Runs that some program can be started with.
pub(super) fn runnable() -> Accepts {
    Accepts::mostly(|run| {
        let mut targets = export::targets().iter();
        targets.any(|target| can_run(target, run))
    })
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
            return Err(Problem::unknown_choice("--allow", id, &all).into());
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

fn document(run: &Startable, plans: &Plans) -> Document {
    let Startable {
        scenario: run,
        changes,
    } = run;
    let now = Document::new()
        .with("device", band(plans.now.estimate.device))
        .with("fits", fits(plans.now.estimate.fit()))
        .with("step_seconds", plans.now.seconds);
    let all = plans.plans.iter().map(|plan| of_plan(run, plan));
    let unlock = plans.unlock.iter().map(|row| of_unlock(run, row));
    let changes = changes.iter().map(|line| line.as_str().into());
    Document::new()
        .with("now", now)
        .with("for_program", Document::List(changes.collect()))
        .with("plans", Document::List(all.collect()))
        .with("unlock", Document::List(unlock.collect()))
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

pub(super) fn seconds(full: &Full) -> Option<f64> {
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
    let changes = plan.changes.iter();
    let steps: Vec<&Scenario> = changes.map(|change| &change.after.scenario).collect();
    let able = export::targets()
        .iter()
        .filter(|target| target.expresses(run, &steps));
    able.map(|target| target.id.into()).collect()
}

fn text(plans: &Plans, aim: Aim) -> String {
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
    if !plans.fits() && aim == Aim::Faster {
        text.push_str("\nnothing is noticeably faster with these results\n");
    } else if !plans.fits() && aim == Aim::Cards {
        text.push_str(
            "\nnothing fits there without changing what is trained; on how many GPUs it would:\n",
        );
    } else if !plans.fits() {
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

/// What a plan needs and how long its step takes.
fn needs(plan: &Plan) -> String {
    let needs = verdict(&plan.full.estimate);
    match seconds(&plan.full) {
        Some(seconds) => format!("{needs}; a step takes {}", Seconds::new(seconds)),
        None => needs,
    }
}

/// What a plan needs and how long its step takes, compared with the run as it is.
fn summary(plans: &Plans, plan: &Plan) -> String {
    let Some(after) = seconds(&plan.full) else {
        return needs(plan);
    };
    let compared = plans.now.seconds.map_or(String::new(), |before| {
        match planner::speed(before, after) {
            Speed::Alike => ", about as fast as now".into(),
            Speed::Faster => format!(", {:.2} × as fast as now", before / after),
            Speed::Slower => format!(", {:.2} × as long as now", after / before),
        }
    });
    format!("{}{compared}", needs(plan))
}
