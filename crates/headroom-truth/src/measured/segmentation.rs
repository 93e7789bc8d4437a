//! Records of MMSegmentation's model zoo: a configuration's name, its crop and its classes.

use super::Record;
use headroom_core::network::{self as nets, Net, segmenter};

pub(super) fn is_record(record: &Record) -> bool {
    record.framework.starts_with("mmsegmentation")
}

pub(super) fn network(record: &Record) -> Option<Result<Box<dyn Net>, String>> {
    if !is_record(record) {
        return None;
    }
    Some(built(record))
}

fn built(record: &Record) -> Result<Box<dyn Net>, String> {
    let name = &*record.model;
    let (architecture, mut sizes) = segmenter(name).ok_or_else(|| {
        let name = &record.model.written;
        format!("no network is known by the configuration `{name}`")
    })?;
    let crop = record.image_size.text().split_once('x');
    let crop = crop.and_then(|(height, width)| Some([height.parse().ok()?, width.parse().ok()?]));
    let [height, width] = crop.ok_or("the record does not say the crop as two numbers")?;
    let classes = record.model_dims.get("num_classes");
    let classes = classes.and_then(|value| value.as_str()?.parse().ok());
    for (name, value) in [
        ("img", height),
        ("img_w", width),
        (
            "classes",
            classes.ok_or("the record does not say the classes")?,
        ),
    ] {
        sizes.set(name, value);
    }
    nets::build(architecture, &sizes).map_err(|error| error.to_string())
}
