//! Irreducible representations of rotations and reflections, as e3nn writes them: `32x0e + 16x1o + 8x2e`.

/// A kind of feature: of degree `l`, even or odd under reflection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Irrep {
    pub l: u64,
    pub odd: bool,
}

/// So many features of each kind, by degree, even before odd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Irreps(Vec<(u64, Irrep)>);

/// A path of a fully connected tensor product: which parts it joins, and into which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    pub first: usize,
    pub second: usize,
    pub out: usize,
}

/// Degrees e3nn has Wigner symbols for.
const HIGHEST: u64 = 11;
const MOST_FEATURES: u64 = 65_536;

impl Irrep {
    pub const fn dim(self) -> u64 {
        2 * self.l + 1
    }

    /// `1o`, as in names of sizes.
    fn parse(text: &str) -> Option<Self> {
        let (degree, parity) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let odd = match parity {
            "e" => false,
            "o" => true,
            _ => return None,
        };
        let plain = !degree.is_empty() && degree.bytes().all(|b| b.is_ascii_digit());
        let l = degree.parse().ok().filter(|l| *l <= HIGHEST)?;
        plain.then_some(Self { l, odd })
    }

    /// What the product of two kinds can hold.
    fn allows(self, other: Self, out: Self) -> bool {
        (self.odd ^ other.odd) == out.odd
            && self.l.abs_diff(other.l) <= out.l
            && out.l <= self.l + other.l
    }
}

impl Irreps {
    /// Reads `32x0e + 16x1o`; a part without a number counts once.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |part: &str| {
            format!(
                "`{part}` of `{text}` is no irrep; expected parts such as 16x1o: a number up to {MOST_FEATURES}, x, a \
                 degree up to {HIGHEST}, e or o"
            )
        };
        let mut all = Self::default();
        for part in text.split('+').map(str::trim) {
            let (count, kind) = part.split_once('x').unwrap_or(("1", part));
            let count = count.trim().parse().ok();
            let count = count.filter(|n: &u64| (1..=MOST_FEATURES).contains(n));
            let kind = Irrep::parse(kind.trim());
            let (Some(count), Some(kind)) = (count, kind) else {
                return Err(wrong(part));
            };
            all.add(count, kind);
        }
        Ok(all)
    }

    /// The sizes among these that are named like an irrep.
    pub fn of_sizes<'a>(sizes: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut all = Self::default();
        for (name, count) in sizes {
            if let Some(kind) = Irrep::parse(name) {
                all.add(count.min(MOST_FEATURES), kind);
            }
        }
        all
    }

    /// The same as sizes by name, as a model's dimensions are given.
    pub fn sizes(&self) -> impl Iterator<Item = (String, u64)> {
        self.0.iter().map(|(n, kind)| (kind.to_string(), *n))
    }

    /// Whether a size's name is that of an irrep.
    pub fn names(name: &str) -> bool {
        Irrep::parse(name).is_some()
    }

    /// Degrees 0 to `highest`, once each, with the parity of spherical harmonics.
    pub fn harmonics(highest: u64) -> Self {
        let mut all = Self::default();
        for l in 0..=highest.min(HIGHEST) {
            all.add(1, Irrep { l, odd: l % 2 == 1 });
        }
        all
    }

    /// The same kinds, each so many times as often.
    pub fn times(mut self, factor: u64) -> Self {
        for (count, _) in &mut self.0 {
            *count = count.saturating_mul(factor);
        }
        self
    }

    fn add(&mut self, count: u64, kind: Irrep) {
        if count == 0 {
            return;
        }
        match self.0.binary_search_by(|(_, other)| other.cmp(&kind)) {
            Ok(at) => {
                if let Some((n, _)) = self.0.get_mut(at) {
                    *n = n.saturating_add(count);
                }
            }
            Err(at) => self.0.insert(at, (count, kind)),
        }
    }

    pub fn parts(&self) -> &[(u64, Irrep)] {
        &self.0
    }

    pub fn part(&self, at: usize) -> (u64, Irrep) {
        let none = (0, Irrep { l: 0, odd: false });
        self.0.get(at).copied().unwrap_or(none)
    }

    /// Numbers in a feature vector.
    pub fn dim(&self) -> u64 {
        self.0.iter().map(|(n, kind)| n * kind.dim()).sum()
    }

    /// The scalars, which come first.
    pub fn scalars(&self) -> u64 {
        let scalar = |part: &&(u64, Irrep)| part.1.l == 0;
        self.0.iter().filter(scalar).map(|(n, _)| n).sum()
    }

    /// How many features of degree one and higher there are: each takes a gate.
    pub fn gated(&self) -> u64 {
        self.0
            .iter()
            .filter(|part| part.1.l > 0)
            .map(|(n, _)| n)
            .sum()
    }

    /// What goes into `e3nn.nn.Gate` to come out as these: one more even scalar for each gated feature.
    pub fn before_gate(&self) -> Self {
        let mut all = self.clone();
        let even = Irrep { l: 0, odd: false };
        all.add(self.gated(), even);
        all
    }

    /// The paths of `FullyConnectedTensorProduct(self, other, out)`, in its order.
    pub fn paths(&self, other: &Self, out: &Self) -> Vec<Path> {
        let mut all = Vec::new();
        for (first, (_, a)) in self.0.iter().enumerate() {
            for (second, (_, b)) in other.0.iter().enumerate() {
                for (to, (_, c)) in out.0.iter().enumerate() {
                    if a.allows(*b, *c) {
                        all.push(Path {
                            first,
                            second,
                            out: to,
                        });
                    }
                }
            }
        }
        all
    }

    /// Weights of all paths together: the number a radial network makes for every edge.
    pub fn weight_numel(&self, other: &Self, out: &Self) -> u64 {
        self.paths(other, out)
            .iter()
            .map(|path| {
                let counts = [
                    self.part(path.first),
                    other.part(path.second),
                    out.part(path.out),
                ];
                counts.iter().map(|(n, _)| n).product::<u64>()
            })
            .sum()
    }
}

impl std::fmt::Display for Irrep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.l, if self.odd { "o" } else { "e" })
    }
}

impl std::fmt::Display for Irreps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (n, kind)) in self.0.iter().enumerate() {
            let plus = if i > 0 { "+" } else { "" };
            write!(f, "{plus}{n}x{kind}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, dim: u64, paths: usize, weights: u64) {
        let irreps = Irreps::parse(text).unwrap();
        let (sh, gate) = (Irreps::harmonics(2), irreps.before_gate());
        assert_eq!(irreps.dim(), dim);
        assert_eq!(irreps.paths(&sh, &gate).len(), paths);
        assert_eq!(irreps.weight_numel(&sh, &gate), weights);
        let again = Irreps::parse(&irreps.to_string()).unwrap();
        assert_eq!(again, irreps);
    }

    #[test]
    fn dimensions_paths_and_weights_are_e3nns() {
        // `e3nn.o3.FullyConnectedTensorProduct(irreps, "0e+1o+2e", gate.irreps_in).weight_numel`, e3nn 0.6.
        check("32x0e + 16x1o + 8x2e", 120, 11, 4_800);
        check("16x0e+8x1o+4x2e", 60, 11, 1_200);
        check("64x0e + 32x1o + 16x2e", 240, 11, 19_200);
        check("8x0e+8x2e+8x0e", 56, 5, 832);
        check("1o", 3, 3, 3);
    }

    #[test]
    fn what_is_no_irrep_is_refused_by_name() {
        for text in [
            "", "x0e", "32x", "32x0", "32x0f", "0x0e", "3x99e", "-1x0e", "3x0e+", "é",
        ] {
            let message = Irreps::parse(text).unwrap_err();
            assert!(message.contains("is no irrep"), "{text}: {message}");
        }
    }
}
