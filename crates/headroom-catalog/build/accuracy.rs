//! The recorded runs that predictions are compared with, from the tables of `docs/accuracy.md`.

/// The rows of every family's table as constants: the case, what was true and what is predicted, in MiB.
pub fn table(page: &str) -> Result<String, String> {
    let mut rust = String::from("&[\n");
    let mut count = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [case, truth, predicted, error] = cells[..] else {
            continue;
        };
        if !error.ends_with('%') {
            continue;
        }
        let (Some(truth), Some(predicted)) = (mib(truth), mib(predicted)) else {
            continue;
        };
        rust.push_str(&format!("({case:?}, {truth}, {predicted}),\n"));
        count += 1;
    }
    rust.push(']');
    if count == 0 {
        return Err(
            "docs/accuracy.md: expected rows of `| case | true | predicted | error |`".into(),
        );
    }
    Ok(rust)
}

fn mib(cell: &str) -> Option<u32> {
    let gib: f64 = cell.strip_suffix(" GiB")?.parse().ok()?;
    Some((gib * 1024.0).round() as u32)
}
