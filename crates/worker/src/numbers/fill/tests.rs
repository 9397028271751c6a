use super::*;

const NORMAL: Spread =
    Spread { mean: 0.0, std: 1.0, low: -6.0, high: 6.0, zeros: 0.0, infinite: 0.0, is_uniform: false };

/// The contents that `make` gives a tensor, in row-major order.
fn filled(name: &str, placed: &StorageLayout, make: &dyn Fn(&mut Area<'_>, &mut Rng)) -> Vec<f64> {
    let element = ElementType::of(name).unwrap();
    let mut bytes = vec![0; usize::try_from(placed.extent()).unwrap() * element.size];
    let mut area = Area::new(&mut bytes, element, placed);
    make(&mut area, &mut Rng::new(7));
    let places: Vec<usize> = (0..area.count()).map(|number| area.at(number)).collect();
    places.into_iter().map(|at| element.decode(element.read(&bytes, at))).collect()
}

fn dense(shape: &[i64]) -> StorageLayout {
    StorageLayout { shape: shape.to_vec(), stride: protocol::sizes::contiguous(shape), offset: 0 }
}

#[test]
fn floats_have_the_requested_distribution() {
    for (name, count) in [("float32", 200_000), ("float16", 200_000), ("bfloat16", 50_000), ("float64", 600_000)] {
        let spread = Spread { mean: 3.0, std: 0.5, zeros: 0.25, low: 2.0, ..NORMAL };
        let values = filled(name, &dense(&[count]), &|area, chance| area.normal(&spread, chance));
        let rest: Vec<f64> = values.iter().copied().filter(|&value| value != 0.0).collect();
        let share = rest.len() as f64 / values.len() as f64;
        let mean = rest.iter().sum::<f64>() / rest.len() as f64;
        let variance = rest.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / rest.len() as f64;
        assert!((share - 0.75).abs() < 0.01 && (mean - 3.0).abs() < 0.02, "{name}: {share} {mean}");
        assert!((variance.sqrt() - 0.5).abs() < 0.02 && rest.iter().all(|&value| value >= 2.0), "{name}: {variance}");
    }
    let uniform = Spread { is_uniform: true, low: 1.0, high: 2.0, infinite: 0.5, ..NORMAL };
    let values = filled("float32", &dense(&[100_000]), &|area, chance| area.normal(&uniform, chance));
    let infinite = values.iter().filter(|&&value| value == f64::NEG_INFINITY).count();
    assert!((infinite as f64 / 1e5 - 0.5).abs() < 0.01);
    assert!(values.iter().all(|&value| value == f64::NEG_INFINITY || (1.0..=2.0).contains(&value)));
    // Few values are equal, also in what several threads fill.
    let mut values = filled("float32", &dense(&[1 << 20]), &|area, chance| area.normal(&NORMAL, chance));
    values.sort_by(f64::total_cmp);
    values.dedup();
    assert!(values.len() > 1_000_000, "{}", values.len());
}

#[test]
fn equal_seeds_give_equal_contents_wherever_they_lie() {
    let whole = StorageLayout { shape: vec![6, 4], stride: vec![4, 1], offset: 0 };
    let of = |placed: &StorageLayout| filled("float32", placed, &|area, chance| area.normal(&NORMAL, chance));
    assert_eq!(of(&whole), of(&whole));
    // A dimension with stride 0 has one element; gaps are left unchanged.
    assert_eq!(of(&StorageLayout { stride: vec![0, 1], ..whole.clone() }).len(), 4);
    let element = ElementType::of("float32").unwrap();
    let gaps = StorageLayout { stride: vec![8, 2], offset: 1, ..whole };
    let mut bytes = vec![0; 4 * usize::try_from(gaps.extent()).unwrap()];
    Area::new(&mut bytes, element, &gaps).values((1..=24).map(f64::from));
    let all: Vec<f64> = (0..bytes.len() / 4).map(|at| element.decode(element.read(&bytes, 4 * at))).collect();
    assert_eq!(&all[..6], [0.0, 1.0, 0.0, 2.0, 0.0, 3.0]);
    assert_eq!(all.iter().sum::<f64>(), 300.0);
}

#[test]
fn integers_stay_in_range_with_the_requested_share_of_zeros() {
    let of = |name: &str, low, high, zeros| {
        filled(name, &dense(&[1 << 16]), &|area, chance| area.range(low, high, zeros, chance))
    };
    let values = of("int32", -3, 4, 0.0);
    assert!((-3..=4).all(|value| values.contains(&f64::from(value))));
    assert!(values.iter().all(|value| (-3.0..=4.0).contains(value)));
    let zeros = |values: &[f64]| values.iter().filter(|&&value| value == 0.0).count() as f64 / 65536.0;
    for (found, expected) in [
        (of("int64", 0, i64::MAX, 0.5), 0.5),
        (of("bool", 0, 1, 0.75), 0.75),
        (of("bool", 0, 1, 0.0), 0.5),
        (of("int8", 1, 100, 0.0), 0.0),
    ] {
        assert!((zeros(&found) - expected).abs() < 0.02, "{expected}");
    }
}

#[test]
fn named_contents_have_their_described_values() {
    let of = |values: &str, low: f64| {
        filled("float16", &dense(&[64, 128]), &|area, chance| {
            area.normal(&Spread { low, ..NORMAL }, chance);
            area.apply(values, (low, 6.0), chance).unwrap();
        })
    };
    let count = |values: &[f64], is: &dyn Fn(f64) -> bool| values.iter().filter(|&&value| is(value)).count();
    let large = of("large", -6.0);
    assert!(large.iter().any(|value| value.abs() > 300.0) && large.iter().all(|value| value.abs() <= 600.0));
    let far = of("far", -6.0);
    assert!(far.iter().all(|value| (170.0..=190.0).contains(value)) && far.iter().any(|&value| value != far[0]));
    assert!(of("below", -6.0).iter().all(|value| (-190.0..=-170.0).contains(value)));
    assert!(of("below", 0.5).iter().all(|&value| value >= 0.5));
    assert!(of("negative", -6.0).iter().all(|&value| value <= 0.0));
    let subnormal = of("subnormal", -6.0);
    assert!(subnormal.iter().all(|value| value.abs() <= 2.0_f64.powi(-14)) && subnormal.iter().any(|&it| it != 0.0));
    let rows = of("constant-rows", -6.0);
    assert!(rows.chunks(128).all(|row| row.iter().all(|&value| value == row[0])) && rows[0] != rows[128]);
    let outliers = of("outlier", -6.0);
    let pulled = |row: &[f64]| count(row, &|value| value.abs() > 6.0);
    assert!(outliers.chunks(128).all(|row| pulled(row) <= 1) && outliers.chunks(128).map(pulled).sum::<usize>() > 50);
    let tiny = of("tiny", -6.0);
    let denormal = count(&tiny, &|value| value != 0.0 && value.abs() < 2.0_f64.powi(-14));
    assert!(denormal > 500 && tiny.iter().all(|value| value.abs() < 0.01), "{denormal}");
    assert!(of("tiny", 0.5).iter().all(|&value| value > 0.0));
    assert_eq!(of("constant", -6.0), [3.0; 64 * 128]);
    assert!(of("sorted", -6.0).chunks(128).all(<[f64]>::is_sorted));
    let pulled = count(&of("skewed", -6.0), &|value| value.abs() > 10.0);
    assert!((50..250).contains(&pulled), "{pulled}");
    let infinite = of("infinite", -6.0);
    let rows = infinite.chunks(128).filter(|row| row.iter().all(|&value| value == f64::NEG_INFINITY)).count();
    assert!((1..=2).contains(&rows) && infinite[..128].iter().all(|&value| value == f64::NEG_INFINITY));
    assert_eq!(count(&of("infinite", 0.0), &f64::is_infinite), 0);
    let nan = of("nan", -6.0);
    let spoilt = nan.chunks(128).filter(|row| row.iter().any(|value| value.is_nan())).count();
    assert!((1..32).contains(&spoilt), "{spoilt}");
    let integers = of("integers", -6.0);
    assert!((-4..=4).all(|value| integers.contains(&f64::from(value))) && integers.iter().all(|it| it.fract() == 0.0));
    assert_eq!(count(&of("zeros", -6.0), &|value| value == 0.0), 64 * 128);
    assert_eq!(count(&of("integers", 0.5), &|value| value < 1.0), 0);
    for (values, shape) in [("nan", &[][..]), ("infinite", &[5]), ("skewed", &[1]), ("sorted", &[0, 3])] {
        let odd = filled("float32", &dense(shape), &|area, chance| {
            area.values(std::iter::repeat(2.0));
            area.apply(values, (-6.0, 6.0), chance).unwrap();
        });
        assert!(odd.is_empty() || odd.iter().any(|&value| value != 2.0), "{values}");
    }
}

#[test]
fn a_jitter_is_one_unit_in_the_last_place() {
    for name in ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"] {
        let element = ElementType::of(name).unwrap();
        let odd = [0.0, element.greatest(), f64::NAN, element.least(), element.decode(1), -0.0];
        let plain: Vec<f64> = odd.iter().copied().chain((0..300).map(|at| f64::from(at - 150) / 16.0)).collect();
        let of = |jittered: bool| {
            filled(name, &dense(&[plain.len() as i64]), &|area, _| {
                area.values(plain.iter().copied());
                if jittered {
                    area.jitter(3);
                }
            })
        };
        let (before, after) = (of(false), of(true));
        for (one, other) in before.iter().zip(&after).take(odd.len()) {
            assert!(one == other || (one.is_nan() && other.is_nan()), "{name} {one} {other}");
        }
        let steps: Vec<i64> = before
            .iter()
            .zip(&after)
            .skip(odd.len())
            .map(|(&one, &other)| element.encode(other).cast_signed() - element.encode(one).cast_signed())
            .collect();
        assert!(steps.iter().all(|step| step.abs() <= 1), "{name}");
        let moved = steps.iter().filter(|step| **step != 0).count();
        assert!((150..250).contains(&moved), "{name}: {moved}");
    }
}

#[test]
fn coarse_numbers_have_ten_bits_of_mantissa() {
    let plain = [1.0, 1.0 + 2.0_f64.powi(-11), -1.0 - 2.0_f64.powi(-11), -1.0 - 2.0_f64.powi(-12), 0.0, f64::INFINITY];
    let odd = [f64::from(f32::MAX), 2.0_f64.powi(-149)];
    let all: Vec<f64> = plain.into_iter().chain(odd).collect();
    let of = |name: &str, rounds: bool| {
        filled(name, &dense(&[all.len() as i64]), &|area, _| {
            area.values(all.iter().copied());
            area.coarsen(rounds);
        })
    };
    let (up, cut) = (1.0 + 2.0_f64.powi(-10), 2.0_f64.powi(128) - 2.0_f64.powi(117));
    assert_eq!(of("float32", false), [1.0, 1.0, -1.0, -1.0, 0.0, f64::INFINITY, cut, 0.0]);
    // A value that would be rounded to infinity stays.
    assert_eq!(of("float32", true), [1.0, up, -up, -1.0, 0.0, f64::INFINITY, odd[0], 0.0]);
    assert_eq!(of("float64", true), all);
}
