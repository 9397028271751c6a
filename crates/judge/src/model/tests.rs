//! Tests of the performance model on compiled launches.

use super::*;

/// A kernel that reads rows in parts, `$PASSES` times.
fn rows(passes: usize) -> String {
    let one = r#"
    %l$ = scf.for %off$ = %zero to %N step %step iter_args(%sum$ = %start) -> (f32)  : i32 {
      %r$ = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
      %o$ = tt.splat %off$ : i32 -> tensor<512xi32>
      %c$ = arith.addi %o$, %r$ : tensor<512xi32>
      %n$ = tt.splat %N : i32 -> tensor<512xi32>
      %m$ = arith.cmpi slt, %c$, %n$ : tensor<512xi32>
      %p$ = tt.splat %row : !tt.ptr<f16> -> tensor<512x!tt.ptr<f16>>
      %q$ = tt.addptr %p$, %c$ : tensor<512x!tt.ptr<f16>>, tensor<512xi32>
      %a$ = tt.load %q$, %m$, %other : tensor<512x!tt.ptr<f16>>
      %e$ = arith.extf %a$ : tensor<512xf16> to tensor<512xf32>
      %s$ = "tt.reduce"(%e$) <{axis = 0 : i32}> ({
      ^bb0(%x$: f32, %y$: f32):
        %z$ = arith.addf %x$, %y$ : f32
        tt.reduce.return %z$ : f32
      }) : (tensor<512xf32>) -> f32
      %t$ = arith.addf %sum$, %s$ : f32
      scf.yield %t$ : f32
    }"#;
    let all: String = (0..passes).map(|pass| one.replace('$', &format!("_{pass}"))).collect();
    format!(
        r#"module {{
  tt.func public @rows(%X: !tt.ptr<f16> {{tt.divisibility = 16 : i32}}, %N: i32) attributes {{noinline = false}} {{
    %zero = arith.constant 0 : i32
    %step = arith.constant 512 : i32
    %start = arith.constant 0.000000e+00 : f32
    %other = arith.constant dense<0.000000e+00> : tensor<512xf16>
    %pid = tt.get_program_id x : i32
    %at = arith.muli %pid, %N : i32
    %row = tt.addptr %X, %at : !tt.ptr<f16>, i32{all}
    tt.return
  }}
}}
"#
    )
}

fn call(launches: &[CompiledLaunch]) -> CompiledLaunches {
    CompiledLaunches { launches: launches.to_vec(), ..CompiledLaunches::default() }
}

fn drafted(text: String, programs: i64, length: i64) -> CompiledLaunch {
    let tensor = KernelArgument::Tensor { offset: 0, bytes: (2 * programs * length) as f64 };
    CompiledLaunch {
        kernel: "rows".to_owned(),
        grid: vec![programs],
        parameters: vec![tensor, KernelArgument::Int(length)],
        text,
        registers: 32,
        warps: 4,
        stages: 1,
        ..CompiledLaunch::default()
    }
}

fn work_of(text: &str, program: i64, length: i64) -> Work {
    let place = ProgramPosition { program: [program, 0, 0], grid: [100, 1, 1] };
    let arguments = [LaunchArgument::Pointer(0), LaunchArgument::Int(length)];
    simulation::work(&ttir::parse(text), "rows", &arguments, place).unwrap()
}

#[test]
fn bytes_are_exact_for_traced_and_extrapolated_loops() {
    let text = rows(1);
    // Two iterations; 100 iterations, most of which are alike; a row whose last part is masked; and more iterations
    // than are ever traced.
    for (length, expected) in [(1024, 2048.0), (51_200, 102_400.0), (51_000, 102_016.0), (2_560_000, 5_120_000.0)] {
        let work = work_of(&text, 0, length);
        assert_eq!(work.loaded[&0], expected, "{length}");
        assert_eq!(work.again[&0], 0.0);
        assert_eq!(work.rounds, (length as f64 / 512.0).ceil());
        assert_eq!(work.exchanges, work.rounds);
    }
    let twice = work_of(&rows(3), 5, 51_200);
    assert_eq!((twice.loaded[&0], twice.again[&0]), (307_200.0, 204_800.0));
}

#[test]
fn the_work_of_a_call_covers_all_programs() {
    let gpu = Gpu::named("h200").unwrap();
    let [once, thrice] =
        [1, 3].map(|passes| predict(&call(&[drafted(rows(passes), 1000, 8192)]), &gpu).unwrap().counted);
    // A sum performs one addition for each element.
    assert_eq!(once.operations, 1000.0 * 8192.0);
    assert_eq!(thrice.operations, 3.0 * once.operations);
    // Everything is loaded once, and some of it again.
    assert!(
        once.bytes == 2.0 * 1000.0 * 8192.0 && (once.bytes..3.0 * once.bytes).contains(&thrice.bytes),
        "{thrice:?}"
    );
    assert_eq!(once.bandwidth, 4.8e12);
    assert!((once.peak / 61.8e12 - 1.0).abs() < 0.01, "{}", once.peak);
}

/// Rounds that all differ are counted without tracing most of them.
#[test]
fn long_loops_with_irregular_iterations_are_not_traced_completely() {
    let text = r#"module {
  tt.func public @kernel(%A: !tt.ptr<f32>, %N: i32) attributes {noinline = false} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %end = scf.for %i = %zero to %N step %one iter_args(%sum = %one) -> (i32)  : i32 {
      %more = arith.addi %sum, %i : i32
      %at = arith.andi %more, %one : i32
      %p = tt.splat %A : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
      %o = tt.splat %at : i32 -> tensor<1024xi32>
      %s = arith.addi %o, %r : tensor<1024xi32>
      %q = tt.addptr %p, %s : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
      %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
      scf.yield %more : i32
    }
    tt.return
  }
}
"#;
    let place = ProgramPosition { program: [0; 3], grid: [1; 3] };
    let rounds = 10_000_000;
    let arguments = [LaunchArgument::Pointer(0), LaunchArgument::Int(rounds)];
    let work = simulation::work(&ttir::parse(text), "kernel", &arguments, place).unwrap();
    assert_eq!(work.rounds, rounds as f64);
    assert!((work.loaded[&0] / (rounds as f64 * 4096.0) - 1.0).abs() < 0.02, "{work:?}");
}

/// A loop over programs carries no values: what each round does shows in its work alone.
#[test]
fn loops_with_growing_iterations_are_traced_completely() {
    let text = r#"module {
  tt.func public @kernel(%A: !tt.ptr<f32>, %N: i32) attributes {noinline = false} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %p = tt.splat %A : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %q = tt.addptr %p, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    scf.for %i = %zero to %N step %one  : i32 {
      scf.for %j = %zero to %i step %one  : i32 {
        %v = tt.load %q : tensor<256x!tt.ptr<f32>>
      }
    }
    tt.return
  }
}
"#;
    let place = ProgramPosition { program: [0; 3], grid: [1; 3] };
    let arguments = [LaunchArgument::Pointer(0), LaunchArgument::Int(20)];
    let work = simulation::work(&ttir::parse(text), "kernel", &arguments, place).unwrap();
    assert_eq!(work.loaded[&0], 1024.0 * (20.0 * 19.0 / 2.0));
}

#[test]
fn sampled_programs_cover_each_axis_of_the_grid() {
    for (programs, axis) in [(4096, 64), (4096, 4096), (2048, 32), (132, 132), (3, 3), (48, 3)] {
        let all = samples(programs);
        assert!((all.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        let mean: f64 = all.iter().map(|(at, share)| (at % axis) as f64 * share).sum();
        let expected = (axis - 1) as f64 / 2.0;
        assert!((mean - expected).abs() <= 0.15 * axis as f64, "{programs} {axis}: {mean}");
        assert!(all.iter().all(|(at, _)| (0..programs).contains(at)));
    }
}

#[test]
fn a_single_pass_is_predicted_faster_than_three() {
    let gpu = Gpu::named("h200").unwrap();
    let time = |passes: usize| predict(&call(&[drafted(rows(passes), 16_384, 8192)]), &gpu).unwrap().milliseconds;
    let (once, thrice) = (time(1), time(3));
    // 268 MB at 4.8 TB/s are 56 µs.
    assert!((0.056..0.15).contains(&once), "{once}");
    assert!(thrice > 1.3 * once, "{thrice} {once}");
    // Half as many programs on a GPU with a fifth of the bandwidth.
    let slow = predict(&call(&[drafted(rows(1), 8192, 8192)]), &Gpu::named("l40s").unwrap()).unwrap().milliseconds;
    assert!(slow > 1.5 * once, "{slow} {once}");
}

#[test]
fn the_fastest_configuration_is_predicted_and_oversized_ones_are_refused() {
    let gpu = Gpu::named("h200").unwrap();
    let [one, three] = [1, 3].map(|passes| drafted(rows(passes), 4096, 4096));
    let alone = predict(&call(std::slice::from_ref(&one)), &gpu).unwrap().milliseconds;
    let of = |draft: &CompiledLaunch, choice| CompiledLaunch { choice: Some(choice), ..draft.clone() };
    let large = CompiledLaunch { shared: 400_000, ..one.clone() };
    let chosen = predict(&call(&[of(&three, 1), of(&one, 1), of(&large, 1)]), &gpu).unwrap().milliseconds;
    assert!((chosen - alone).abs() < 1e-9, "{chosen} {alone}");
    let both = predict(&call(&[of(&one, 1), of(&one, 3)]), &gpu).unwrap().milliseconds;
    assert!((both - 2.0 * alone).abs() < 1e-9, "{both} {alone}");
    assert!(predict(&call(std::slice::from_ref(&large)), &gpu).unwrap_err().contains("out of resource"));
    assert!(predict(&call(&[of(&large, 1)]), &gpu).is_err());
}

#[test]
fn samples_represent_all_programs() {
    for programs in [1, 3, 5, 6, 1000] {
        let samples = samples(programs);
        assert!((samples.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(samples.iter().all(|(at, _)| (0..programs).contains(at)));
        if programs <= SAMPLED {
            assert!(samples.iter().map(|(at, _)| *at).eq(0..programs));
        }
    }
}
