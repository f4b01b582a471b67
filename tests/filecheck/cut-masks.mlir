// PASSES: cut-masks
// ARCH: x86-64-v4
//
// Of a tile's 32 rows no key behind the last one counts, and none that is 100 before the first one:
// loops over keys have bounds that are multiples of two vectors, scores outside of them are not
// computed, and sums go over the others only.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[T:.*]] = 0 to 16 {
// The scores.
// CHECK:           affine.for %[[I:.*]] = 0 to 32 {
// CHECK-NEXT:        affine.for %[[J:.*]] = max #[[LOW:.*]](%[[T]]) to #[[HIGH:.*]](%[[T]]) {
// CHECK:               affine.for %{{.*}} = 0 to 8 iter_args
// Their maximum.
// CHECK:           affine.for %{{.*}} = max #[[LOW]](%[[T]]) to #[[HIGH]](%[[T]]) iter_args
// CHECK:             arith.maximumf
// The exponentials.
// CHECK:           affine.for %{{.*}} = max #[[LOW]](%[[T]]) to #[[HIGH]](%[[T]]) {
// CHECK:             math.exp
// The second product.
// CHECK:           affine.for %{{.*}} = 0 to 8 {
// CHECK:             affine.for %{{.*}} = max #[[LOW]](%[[T]]) to #[[HIGH]](%[[T]]) iter_args
// CHECK:               arith.mulf
func.func @main(%q: memref<512x8xf32>, %k: memref<512x8xf32>, %v: memref<512x8xf32>, %out: memref<512x8xf32>) {
  affine.for %t = 0 to 16 {
    %s = memref.alloca() : memref<32x512xf32>
    %m = memref.alloca() : memref<32xf32>
    %p = memref.alloca() : memref<16640xf32>
    affine.for %i = 0 to 32 {
      affine.for %j = 0 to 512 {
        %zero = arith.constant 0.0 : f32
        %0 = affine.for %d = 0 to 8 iter_args(%sum = %zero) -> (f32) {
          %x = affine.load %q[%t * 32 + %i, %d] : memref<512x8xf32>
          %y = affine.load %k[%j, %d] : memref<512x8xf32>
          %xy = arith.mulf %x, %y : f32
          %n = arith.addf %sum, %xy : f32
          affine.yield %n : f32
        }
        affine.store %0, %s[%i, %j] : memref<32x512xf32>
      }
    }
    affine.for %i = 0 to 32 {
      %low = arith.constant 0xFF800000 : f32
      %0 = affine.for %j = 0 to 512 iter_args(%most = %low) -> (f32) {
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 32 + d1)>(%t, %i)
        %a = arith.index_cast %row : index to i64
        %b = arith.index_cast %j : index to i64
        %distance = arith.subi %a, %b : i64
        %none = arith.constant 0 : i64
        %far = arith.constant 100 : i64
        %later = arith.cmpi slt, %distance, %none : i64
        %earlier = arith.cmpi sge, %distance, %far : i64
        %masked = arith.ori %later, %earlier : i1
        %x = affine.load %s[%i, %j] : memref<32x512xf32>
        %y = arith.select %masked, %low, %x : f32
        %n = arith.maximumf %most, %y : f32
        affine.yield %n : f32
      }
      affine.store %0, %m[%i] : memref<32xf32>
    }
    affine.for %i = 0 to 32 {
      affine.for %j = 0 to 512 {
        %low = arith.constant 0xFF800000 : f32
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 32 + d1)>(%t, %i)
        %a = arith.index_cast %row : index to i64
        %b = arith.index_cast %j : index to i64
        %distance = arith.subi %a, %b : i64
        %none = arith.constant 0 : i64
        %far = arith.constant 100 : i64
        %later = arith.cmpi slt, %distance, %none : i64
        %earlier = arith.cmpi sge, %distance, %far : i64
        %masked = arith.ori %later, %earlier : i1
        %x = affine.load %s[%i, %j] : memref<32x512xf32>
        %y = arith.select %masked, %low, %x : f32
        %most = affine.load %m[%i] : memref<32xf32>
        %z = arith.subf %y, %most : f32
        %e = math.exp %z : f32
        affine.store %e, %p[%i * 520 + %j] : memref<16640xf32>
      }
    }
    affine.for %i = 0 to 32 {
      affine.for %d = 0 to 8 {
        %zero = arith.constant 0.0 : f32
        %0 = affine.for %j = 0 to 512 iter_args(%sum = %zero) -> (f32) {
          %x = affine.load %p[%i * 520 + %j] : memref<16640xf32>
          %y = affine.load %v[%j, %d] : memref<512x8xf32>
          %xy = arith.mulf %x, %y : f32
          %n = arith.addf %sum, %xy : f32
          affine.yield %n : f32
        }
        affine.store %0, %out[%t * 32 + %i, %d] : memref<512x8xf32>
      }
    }
  } {polyblocks.tile}
  return
}
