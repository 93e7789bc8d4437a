//! Records of the model zoos of MMDetection and detectron2: a configuration's name.

use super::Record;
use headroom_core::network::{self as nets, Net, detector};

pub(super) fn is_record(record: &Record) -> bool {
    record.framework.starts_with("mmdetection") || record.framework.starts_with("detectron2")
}

pub(super) fn network(record: &Record) -> Option<Result<Box<dyn Net>, String>> {
    is_record(record).then(|| built(record))
}

/// Objects of COCO's fullest picture (train2017, without crowds): the peak is that of the whole training.
const OBJECTS: u64 = 93;

fn built(record: &Record) -> Result<Box<dyn Net>, String> {
    let name = &record.model.written;
    let unknown = || format!("no network is known by the configuration `{name}`");
    let (architecture, mut sizes) = detector(name).ok_or_else(unknown)?;
    let [height, width] = picture(&record.model);
    for (name, value) in [("img", height), ("img_w", width), ("objects", OBJECTS)] {
        sizes.set(name, value);
    }
    // The tables of detectron2's first release, of October 2019.
    sizes.set("first_release", u64::from(architecture.starts_with("d2")));
    nets::build(architecture, &sizes).map_err(|error| error.to_string())
}

/// The largest picture: its sides by the data set's `img_scale`, rounded up to 32 where there is a pyramid.
fn picture(model: &str) -> [u64; 2] {
    if model.ends_with("cityscapes") {
        [1024, 2048]
    } else if model.ends_with("voc0712") {
        [608, 1024]
    } else if model.contains("_c4") || model.contains("_dc5") {
        [800, 1333]
    } else {
        [800, 1344]
    }
}
