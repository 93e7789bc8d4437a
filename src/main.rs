//! The page's entry point.

fn main() {
    headroom::web::start();
}
