//! Two sequences of sizes aligned: which of the one is which of the other.

use std::ops::Range;

/// Pairs of sizes that are compared at most; beyond that the order is left out of account.
const PAIRS: usize = 16_000_000;

/// Places in two sequences that belong together.
pub(super) type Pair = (usize, usize);

/// The longest common subsequence of two sequences, as pairs of places in order; none where that were too much work.
///
/// Hirschberg's algorithm (Communications of the ACM 18, 1975): as much memory as the sequences take, and twice the work of
/// the table of all pairs.
pub(super) fn in_order(a: &[u64], b: &[u64]) -> Vec<Pair> {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (rest_a, rest_b) = (a.get(start..).unwrap_or(&[]), b.get(start..).unwrap_or(&[]));
    let same = |(a, b): &(&u64, &u64)| a == b;
    let end = rest_a
        .iter()
        .rev()
        .zip(rest_b.iter().rev())
        .take_while(same)
        .count();
    let (mid_a, mid_b) = (start..a.len() - end, start..b.len() - end);
    let mut pairs: Vec<Pair> = (0..start).map(|at| (at, at)).collect();
    if mid_a.len().saturating_mul(mid_b.len()) <= PAIRS {
        split(a, b, mid_a, mid_b, &mut pairs);
    }
    pairs.extend(
        (0..end)
            .rev()
            .map(|back| (a.len() - 1 - back, b.len() - 1 - back)),
    );
    pairs
}

/// Halves the first sequence, and finds where the second must be cut for the most common places.
fn split(a: &[u64], b: &[u64], of_a: Range<usize>, of_b: Range<usize>, pairs: &mut Vec<Pair>) {
    if of_a.is_empty() || of_b.is_empty() {
        return;
    }
    if of_a.len() == 1 {
        let found = of_b.clone().find(|at| a.get(of_a.start) == b.get(*at));
        pairs.extend(found.map(|at| (of_a.start, at)));
        return;
    }
    let middle = of_a.start + of_a.len() / 2;
    let before = lengths(a, b, of_a.start..middle, of_b.clone(), false);
    let after = lengths(a, b, middle..of_a.end, of_b.clone(), true);
    let sums = before.iter().zip(after.iter().rev()).map(|(a, b)| a + b);
    let mut cut = (0, 0);
    for (at, sum) in sums.enumerate() {
        if sum > cut.1 {
            cut = (at, sum);
        }
    }
    let cut = of_b.start + cut.0;
    split(a, b, of_a.start..middle, of_b.start..cut, pairs);
    split(a, b, middle..of_a.end, cut..of_b.end, pairs);
}

/// The length of the longest common subsequence of the first part with each beginning of the second; or, backwards, with
/// each end.
fn lengths(
    a: &[u64],
    b: &[u64],
    of_a: Range<usize>,
    of_b: Range<usize>,
    backwards: bool,
) -> Vec<u32> {
    let place = |range: &Range<usize>, step: usize| {
        if backwards {
            range.end - 1 - step
        } else {
            range.start + step
        }
    };
    let mut row = vec![0_u32; of_b.len() + 1];
    for step_a in 0..of_a.len() {
        let one = a.get(place(&of_a, step_a));
        let mut diagonal = 0;
        for step_b in 0..of_b.len() {
            let above = row[step_b + 1];
            row[step_b + 1] = if one == b.get(place(&of_b, step_b)) {
                diagonal + 1
            } else {
                above.max(row[step_b])
            };
            diagonal = above;
        }
    }
    row
}

/// Places of equal sizes whatever their order: of each size the first with the first.
pub(super) fn by_size(a: &[(u64, usize)], b: &[(u64, usize)]) -> Vec<Pair> {
    let [mut a, mut b] = [a.to_vec(), b.to_vec()];
    a.sort_unstable();
    b.sort_unstable();
    let mut rest = b.into_iter().peekable();
    let mut pairs = Vec::new();
    for (size, at) in a {
        while rest.next_if(|(other, _)| *other < size).is_some() {}
        if let Some((_, other)) = rest.next_if(|(other, _)| *other == size) {
            pairs.push((at, other));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept() {
        #[track_caller]
        fn check(a: &[u64], b: &[u64], expected: &[Pair]) {
            assert_eq!(in_order(a, b), expected);
        }
        check(&[], &[1], &[]);
        check(&[1, 2, 3], &[1, 2, 3], &[(0, 0), (1, 1), (2, 2)]);
        // Two more of a size that is there once: the last is the one in its order.
        check(
            &[5, 1, 2, 9, 7],
            &[5, 9, 9, 1, 2, 9, 7],
            &[(0, 0), (1, 3), (2, 4), (3, 5), (4, 6)],
        );
        check(&[1, 2, 3, 4], &[2, 4, 1], &[(1, 0), (3, 1)]);
        check(&[1, 2], &[3, 4], &[]);
    }

    #[test]
    fn as_many_are_aligned_as_by_the_table_of_all_pairs() {
        let mut state = 7_u64;
        let mut below = |most: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % most
        };
        for _ in 0..200 {
            let lengths = [below(12), below(12)];
            let [a, b] = lengths.map(|length| (0..length).map(|_| below(4)).collect::<Vec<u64>>());
            let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    table[i + 1][j + 1] = if x == y {
                        table[i][j] + 1
                    } else {
                        table[i][j + 1].max(table[i + 1][j])
                    };
                }
            }
            let pairs = in_order(&a, &b);
            assert_eq!(pairs.len(), table[a.len()][b.len()], "{a:?} {b:?}");
            assert!(pairs.iter().all(|(i, j)| a[*i] == b[*j]));
            assert!(pairs.is_sorted_by(|x, y| x.0 < y.0 && x.1 < y.1));
        }
    }

    #[test]
    fn of_each_size_the_first_are_paired() {
        let a = [(2, 0), (1, 1), (2, 2), (3, 3)];
        let b = [(2, 0), (2, 1), (2, 2), (1, 3)];
        assert_eq!(by_size(&a, &b), [(1, 3), (0, 0), (2, 1)]);
    }
}
