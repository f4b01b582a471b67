// PASSES: chain-products
// TARGET: chaining gpu
//
// Where a score is minus infinity by an affine condition, blocks of steps are left out in which all
// are; in the others a loop over the masked ones, which most blocks have none of, stores it. A sum of
// the exponentials is not asked for.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 2048 {
// CHECK:           affine.for %[[T:.*]] = 0 to #[[END:.*]](%[[I]]) iter_args
// CHECK:             affine.for %[[J:.*]] = #{{.*}}(%[[T]]) to
// CHECK-NOT:           arith.select
// CHECK:             affine.for %{{.*}} = max #{{.*}}(%[[T]], %[[I]]) to
// CHECK-NEXT:          arith.constant 0xFF800000
// CHECK-NEXT:          affine.store
// CHECK-NEXT:        }
// CHECK:             arith.maximumf
// CHECK:         chained = true
// CHECK-NOT:     affine.for
func.func @main(%q: memref<2048x64xf16>, %k: memref<2048x64xf16>, %v: memref<2048x64xf16>, %out: memref<2048x64xf32>) {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %scores = memref.alloc() : memref<2048x2048xf32>
  %max = memref.alloc() : memref<2048xf32>
  %parts = memref.alloc() : memref<2048x2048xf16>
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %r = affine.for %d = 0 to 64 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %q[%i, %d] : memref<2048x64xf16>
        %b = affine.load %k[%j, %d] : memref<2048x64xf16>
        %x = arith.extf %a : f16 to f32
        %y = arith.extf %b : f16 to f32
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      %row = arith.index_cast %i : index to i64
      %column = arith.index_cast %j : index to i64
      %kept = arith.cmpi sle, %column, %row : i64
      %score = arith.select %kept, %r, %low : f32
      affine.store %score, %scores[%i, %j] : memref<2048x2048xf32>
    }
  } {polyblocks.kernel = "scores", polyblocks.kind = "contraction", polyblocks.sources = []}
  affine.for %i = 0 to 2048 {
    %m = affine.for %j = 0 to 2048 iter_args(%a = %low) -> (f32) {
      %x = affine.load %scores[%i, %j] : memref<2048x2048xf32>
      %n = arith.maximumf %a, %x : f32
      affine.yield %n : f32
    }
    affine.store %m, %max[%i] : memref<2048xf32>
  } {polyblocks.kernel = "max", polyblocks.kind = "reduction", polyblocks.sources = []}
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 2048 {
      %x = affine.load %scores[%i, %j] : memref<2048x2048xf32>
      %m = affine.load %max[%i] : memref<2048xf32>
      %e = arith.subf %x, %m fastmath<reassoc,contract> : f32
      %p = math.exp %e : f32
      %w = arith.truncf %p : f32 to f16
      affine.store %w, %parts[%i, %j] : memref<2048x2048xf16>
    }
  } {polyblocks.kernel = "exp", polyblocks.kind = "pointwise", polyblocks.sources = []}
  affine.for %i = 0 to 2048 {
    affine.for %d = 0 to 64 {
      %r = affine.for %j = 0 to 2048 iter_args(%s = %zero) -> (f32) {
        %a = affine.load %parts[%i, %j] : memref<2048x2048xf16>
        %b = affine.load %v[%j, %d] : memref<2048x64xf16>
        %x = arith.extf %a : f16 to f32
        %y = arith.extf %b : f16 to f32
        %p = arith.mulf %x, %y fastmath<reassoc,contract> : f32
        %t = arith.addf %s, %p fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.store %r, %out[%i, %d] : memref<2048x64xf32>
    }
  } {polyblocks.kernel = "results", polyblocks.kind = "contraction", polyblocks.sources = []}
  return
}
