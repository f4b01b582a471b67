// PASSES: cut-masks
// ARCH: x86-64-v4
//
// Documents of 64 places, of which a row sees those before it in its own: all rows of a tile are in
// one document. Loops over keys run over it alone, and nothing within them asks for the document any
// more. What comes later is asked for still, since a tile has rows before and behind a key.

// Bounds are those of the tile's rows: 32 are two vectors.
// CHECK-DAG: #[[LOW:.*]] = affine_map<(d0) -> ((d0 floordiv 2) * 64)>
// CHECK-DAG: #[[HIGH:.*]] = affine_map<(d0) -> (d0 * 32 + 32)>
// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[T:.*]] = 0 to 16 {
// The maximum.
// CHECK:           affine.for %{{.*}} = #[[LOW]](%[[T]]) to #[[HIGH]](%[[T]]) iter_args
// CHECK-NOT:         arith.ori
// CHECK:             %[[LATER:.*]] = arith.cmpi sgt
// CHECK-NOT:         arith.cmpi
// CHECK:             arith.select %[[LATER]]
// CHECK:             arith.maximumf
// The exponentials.
// CHECK:           affine.for %{{.*}} = #[[LOW]](%[[T]]) to #[[HIGH]](%[[T]]) {
// CHECK-NOT:         arith.ori
// CHECK:             %[[AFTER:.*]] = arith.cmpi sgt
// CHECK-NOT:         arith.cmpi
// CHECK:             arith.select %[[AFTER]]
// CHECK:             math.exp
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
        %first = affine.apply affine_map<(d0, d1) -> (((d0 * 32 + d1) floordiv 64) * 64)>(%t, %i)
        %end = affine.apply affine_map<(d0, d1) -> (((d0 * 32 + d1) floordiv 64) * 64 + 64)>(%t, %i)
        %before = arith.cmpi slt, %j, %first : index
        %behind = arith.cmpi sge, %j, %end : index
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 32 + d1)>(%t, %i)
        %later = arith.cmpi sgt, %j, %row : index
        %outside = arith.ori %before, %behind : i1
        %masked = arith.ori %outside, %later : i1
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
        %first = affine.apply affine_map<(d0, d1) -> (((d0 * 32 + d1) floordiv 64) * 64)>(%t, %i)
        %end = affine.apply affine_map<(d0, d1) -> (((d0 * 32 + d1) floordiv 64) * 64 + 64)>(%t, %i)
        %before = arith.cmpi slt, %j, %first : index
        %behind = arith.cmpi sge, %j, %end : index
        %row = affine.apply affine_map<(d0, d1) -> (d0 * 32 + d1)>(%t, %i)
        %later = arith.cmpi sgt, %j, %row : index
        %outside = arith.ori %before, %behind : i1
        %masked = arith.ori %outside, %later : i1
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
