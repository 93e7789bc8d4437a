//! The same memory by module: an icicle chart, and a table that follows it through the tree.

use leptos::prelude::*;

use super::share;
use super::tree::{Node, Tile, flame};
use crate::shared::browser;
use crate::shared::chart::{self, labels};
use crate::shared::session::{Answer, Session};
use crate::shared::signals::memo;
use crate::text;
use headroom_base::units::UnitStyle;
use headroom_core::estimate::At;

/// The number of levels in the chart.
const LEVELS: usize = 5;
/// The height of a level and its font size, in pixels.
const LEVEL: usize = 24;
const TYPE: f64 = 11.0;

/// The tree below the selected node.
#[component]
pub fn Modules() -> impl IntoView {
    let session = Session::current();
    let tree = memo(move || {
        let tree = |answer: &Answer| {
            Some(Node::of(
                &answer.prediction.as_ref()?.tensors(At::Peak).ok()?,
            ))
        };
        session.settled.with(tree).unwrap_or_default()
    });
    // If the network changed, the existing part of the path.
    let path = RwSignal::new(Vec::<String>::new());
    view! {
        <Crumbs path/>
        <Flame tree path/>
        <Rows tree path/>
    }
}

/// The element that gets the focus when another node is shown.
const LAST_CRUMB: &str = ".crumbs button:last-child";

/// Breadcrumbs: every ancestor of the node is a button.
#[component]
fn Crumbs(path: RwSignal<Vec<String>>) -> impl IntoView {
    let crumb = move |(depth, name): (usize, String)| {
        let back = move |_| {
            path.update(|path| path.truncate(depth));
            browser::catch_focus(LAST_CRUMB);
        };
        view! {
            <button type="button" class="plain" on:click=back>
                {name}
            </button>
        }
    };
    let crumbs = move || {
        let names = [text::WHOLE_MODEL.to_string()]
            .into_iter()
            .chain(path.get());
        names.enumerate().map(crumb).collect_view()
    };
    view! {
        <nav class="crumbs" aria-label=text::MODULE_PATH>
            {crumbs}
        </nav>
    }
}

#[component]
fn Flame(tree: Memo<Node>, path: RwSignal<Vec<String>>) -> impl IntoView {
    let session = Session::current();
    let size = chart::current_size();
    let tiles =
        memo(move || tree.with(|tree| path.with(|path| flame(tree.at(path), path, LEVELS))));
    let draw = move |tile: Tile| {
        let Tile {
            path: own,
            name,
            bytes,
            depth,
            start,
            width,
            opens,
        } = tile;
        let room = width / 100.0 * f64::from(size.get().0) - 8.0;
        let fits = labels::width(&name, TYPE) < room;
        let title = format!("{}: {}", own.join("."), bytes.show(session.units.get()));
        let (top, middle) = (depth * LEVEL, depth * LEVEL + 16);
        view! {
            <g
                class=format!("tile level-{}", depth % 5)
                class:opens=opens
                on:click=move |_| if opens { path.set(own.clone()) }
            >
                <title>{title}</title>
                <rect
                    x=format!("{start:.3}%")
                    width=format!("{width:.3}%")
                    y=top.to_string()
                    height=(LEVEL - 1).to_string()
                ></rect>
                {fits.then(|| {
                    view! {
                        <text x=format!("{start:.3}%") dx="4" y=middle.to_string()>
                            {name}
                        </text>
                    }
                })}
            </g>
        }
    };
    let height = move || {
        let deepest = tiles.with(|tiles| tiles.iter().map(|tile| tile.depth + 1).max());
        (deepest.unwrap_or(1) * LEVEL).to_string()
    };
    // The table below has the same content and works by keyboard.
    view! {
        <svg class="flame" aria-hidden="true" width="100%" height=height data-testid="flame">
            {move || tiles.get().into_iter().map(draw).collect_view()}
        </svg>
    }
}

/// The node's children; those with children of their own open on a click.
#[component]
fn Rows(tree: Memo<Node>, path: RwSignal<Vec<String>>) -> impl IntoView {
    let session = Session::current();
    let open = move |name: String| {
        path.update(|path| path.push(name));
        browser::catch_focus(LAST_CRUMB);
    };
    let rows = move || {
        let units = session.units.get();
        let rows = tree.with(|tree| path.with(|path| rows(tree.at(path), units)));
        let row = |row: Row| {
            let name = row.name.clone();
            let name = if row.opens {
                let to = name.clone();
                view! {
                    <button type="button" class="plain" on:click=move |_| open(to.clone())>
                        {name}
                    </button>
                }
                .into_any()
            } else {
                name.into_any()
            };
            view! {
                <tr>
                    <th scope="row">{name}</th>
                    <td class="number">{row.count}</td>
                    <td class="number">{row.bytes}</td>
                    <td class="number">{row.share}</td>
                </tr>
            }
        };
        rows.into_iter().map(row).collect_view()
    };
    view! {
        <div class="scroller" tabindex="0" role="region" aria-label=text::BY_MODULE>
            <table class="tensors">
                <thead>
                    <tr>
                        <th scope="col">"Module"</th>
                        <th scope="col" class="number">"Tensors"</th>
                        <th scope="col" class="number">"Total"</th>
                        <th scope="col" class="number">"Share"</th>
                    </tr>
                </thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
}

/// One child of a node, as text.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: String,
    pub count: String,
    pub bytes: String,
    pub share: String,
    pub opens: bool,
}

/// The children of a node, the largest first, and the smaller ones in one row.
pub fn rows(node: &Node, units: UnitStyle) -> Vec<Row> {
    const MOST: usize = 14;
    let row = |child: &Node| Row {
        name: child.name.clone(),
        count: child.count.to_string(),
        bytes: child.bytes.show(units),
        share: share(child.bytes, node.bytes),
        opens: !child.children.is_empty(),
    };
    let mut rows: Vec<Row> = node.children.iter().take(MOST).map(row).collect();
    let rest = node.children.get(MOST..).unwrap_or_default();
    if !rest.is_empty() {
        let smaller = Node {
            name: text::SMALLER.into(),
            bytes: rest.iter().map(|child| child.bytes).sum(),
            count: rest.iter().map(|child| child.count).sum(),
            children: Vec::new(),
        };
        rows.push(row(&smaller));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_children_are_merged_into_one_row() {
        let child = |at: u64| Node {
            name: at.to_string(),
            bytes: headroom_base::units::Bytes::mib(at),
            count: 1,
            children: Vec::new(),
        };
        let children: Vec<Node> = (1..=20).rev().map(child).collect();
        let node = Node {
            bytes: children.iter().map(|child| child.bytes).sum(),
            children,
            ..Node::default()
        };
        let rows = rows(&node, UnitStyle::Binary);
        assert_eq!(rows.len(), 15);
        let last = rows.last().unwrap();
        assert_eq!((last.count.as_str(), last.opens), ("6", false));
    }
}
