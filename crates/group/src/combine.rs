//! Arithmetic on slices of elements.

use crate::element::Reduction;
use half::{bf16, f16};

/// A truth value as a byte, 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Truth(pub(crate) u8);

/// What two elements can become.
pub(crate) trait Number: Copy {
    fn sum(self, other: Self) -> Self;
    fn product(self, other: Self) -> Self;
    fn least(self, other: Self) -> Self;
    fn greatest(self, other: Self) -> Self;
    /// Bits; floats have none and stay as they are.
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// A share of `ranks`.
    fn share(self, ranks: u32) -> Self;
}

macro_rules! whole {
    ($($T:ty),*) => { $(impl Number for $T {
        fn sum(self, other: Self) -> Self { self.wrapping_add(other) }
        fn product(self, other: Self) -> Self { self.wrapping_mul(other) }
        fn least(self, other: Self) -> Self { self.min(other) }
        fn greatest(self, other: Self) -> Self { self.max(other) }
        fn and(self, other: Self) -> Self { self & other }
        fn or(self, other: Self) -> Self { self | other }
        fn xor(self, other: Self) -> Self { self ^ other }
        fn share(self, ranks: u32) -> Self { (i128::from(self) / i128::from(ranks)) as $T }
    })* };
}
whole!(i8, u8, i16, i32, i64);

macro_rules! float {
    ($T:ty, $Wide:ty, $from:expr, $to:expr) => {
        impl Number for $T {
            fn sum(self, other: Self) -> Self {
                $from($to(self) + $to(other))
            }
            fn product(self, other: Self) -> Self {
                $from($to(self) * $to(other))
            }
            fn least(self, other: Self) -> Self {
                if $to(self) < $to(other) || $to(self).is_nan() { self } else { other }
            }
            fn greatest(self, other: Self) -> Self {
                if $to(self) > $to(other) || $to(self).is_nan() { self } else { other }
            }
            fn and(self, _: Self) -> Self {
                self
            }
            fn or(self, _: Self) -> Self {
                self
            }
            fn xor(self, _: Self) -> Self {
                self
            }
            fn share(self, ranks: u32) -> Self {
                $from($to(self) / ranks as $Wide)
            }
        }
    };
}
float!(f32, f32, f32::from, f32::from);
float!(f64, f64, f64::from, f64::from);
float!(f16, f32, f16::from_f32, f16::to_f32);
float!(bf16, f32, bf16::from_f32, bf16::to_f32);

impl Number for Truth {
    fn sum(self, other: Self) -> Self {
        self.or(other)
    }
    fn product(self, other: Self) -> Self {
        self.and(other)
    }
    fn least(self, other: Self) -> Self {
        self.and(other)
    }
    fn greatest(self, other: Self) -> Self {
        self.or(other)
    }
    fn and(self, other: Self) -> Self {
        Truth(u8::from(self.0 != 0 && other.0 != 0))
    }
    fn or(self, other: Self) -> Self {
        Truth(u8::from(self.0 != 0 || other.0 != 0))
    }
    fn xor(self, other: Self) -> Self {
        Truth(u8::from((self.0 != 0) != (other.0 != 0)))
    }
    fn share(self, _: u32) -> Self {
        self
    }
}

/// Reduces `from` into `into`, element by element.
pub(crate) fn combine<T: Number>(reduction: Reduction, into: &mut [T], from: &[T]) {
    // One loop for each, so that each is compiled to vector instructions.
    fn each<T: Number>(into: &mut [T], from: &[T], one: impl Fn(T, T) -> T) {
        for (into, from) in into.iter_mut().zip(from) {
            *into = one(*into, *from);
        }
    }
    match reduction {
        Reduction::Sum | Reduction::Avg => each(into, from, T::sum),
        Reduction::Product => each(into, from, T::product),
        Reduction::Min => each(into, from, T::least),
        Reduction::Max => each(into, from, T::greatest),
        Reduction::And => each(into, from, T::and),
        Reduction::Or => each(into, from, T::or),
        Reduction::Xor => each(into, from, T::xor),
    }
}

/// Divides all elements by the number of ranks.
pub(crate) fn share<T: Number>(of: &mut [T], ranks: u32) {
    for one in of {
        *one = one.share(ranks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<T: Number>(reduction: Reduction, mut into: Vec<T>, from: &[T]) -> Vec<T> {
        combine(reduction, &mut into, from);
        into
    }

    #[test]
    fn floats_pass_on_nan_whichever_side_it_is_on() {
        for reduction in [Reduction::Min, Reduction::Max, Reduction::Sum, Reduction::Product] {
            let out = of(reduction, vec![f32::NAN, 1.0], &[1.0, f32::NAN]);
            assert!(out.iter().all(|one| one.is_nan()), "{reduction:?}: {out:?}");
        }
        assert_eq!(of(Reduction::Min, vec![3.0, -1.0], &[2.0, 5.0]), [2.0, -1.0]);
        assert_eq!(of(Reduction::Max, vec![3.0, -1.0], &[2.0, 5.0]), [3.0, 5.0]);
    }

    #[test]
    fn halves_are_rounded_to_the_nearest_after_each_step() {
        // 2048 + 1 lies between two halves of 11 bits; it goes to the even one.
        let sum = of(Reduction::Sum, vec![f16::from_f32(2048.0)], &[f16::from_f32(1.0)]);
        assert_eq!(sum, [f16::from_f32(2048.0)]);
        let sum = of(Reduction::Sum, vec![bf16::from_f32(256.0)], &[bf16::from_f32(3.0)]);
        assert_eq!(sum, [bf16::from_f32(260.0)]);
    }

    #[test]
    fn integers_wrap_and_shares_are_cut() {
        assert_eq!(of(Reduction::Sum, vec![i8::MAX], &[1]), [i8::MIN]);
        assert_eq!(of(Reduction::Product, vec![i64::MAX], &[2]), [-2]);
        let mut seven = [-7i32, 7];
        share(&mut seven, 2);
        assert_eq!(seven, [-3, 3]);
    }

    #[test]
    fn truths_stay_truths() {
        let (a, b) = (vec![Truth(0), Truth(0), Truth(1), Truth(1)], [0, 1, 0, 1].map(Truth));
        assert_eq!(of(Reduction::Sum, a.clone(), &b), [0, 1, 1, 1].map(Truth));
        assert_eq!(of(Reduction::Product, a.clone(), &b), [0, 0, 0, 1].map(Truth));
        assert_eq!(of(Reduction::Xor, a, &b), [0, 1, 1, 0].map(Truth));
    }
}
