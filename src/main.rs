//! The page's entry point.

fn main() {
    headroom_web::start();
}
