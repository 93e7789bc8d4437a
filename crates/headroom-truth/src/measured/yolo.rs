//! Records of MMYOLO's model zoo.

use super::Record;
use headroom_core::network::{self as nets, Net, yolo};

/// Objects of a picture: four of COCO's, which have seven each, are pasted together and cut to the size of one.
const OBJECTS: u64 = 7;

pub(super) fn network(record: &Record) -> Option<Result<Box<dyn Net>, String>> {
    let name = &record.model.written;
    if record.framework.starts_with("yolov5") {
        // Reserved memory after an epoch, whose validation runs twice the batch in the same process.
        return Some(Err("what its validation reserves is not modelled".into()));
    }
    if !record.framework.starts_with("mmyolo") {
        return None;
    }
    let (architecture, mut sizes) = yolo(name)?;
    // YOLOX mixes one more picture into that.
    let pictures = if architecture == "mmyolo_x" { 2 } else { 1 };
    sizes.set("objects", pictures * OBJECTS);
    let net = nets::build(architecture, &sizes);
    Some(net.map_err(|error| error.to_string()))
}
