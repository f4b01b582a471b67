// PASSES: absorb-margins
// TARGET: gpu
//
// A product that reads the padded array before the image is stored in it finds zeros there: the
// buffer of the interior would not be written yet.

// CHECK-LABEL: func.func @main
// CHECK:         affine.load %[[P:.*]][%{{.*}} + %{{.*}}, %{{.*}}] : memref<66x16xf16>
// CHECK:         affine.store %{{.*}}, %[[P]][%{{.*}} + 1, %{{.*}}] : memref<66x16xf16>
// CHECK:         affine.load %[[P]][%{{.*}} + %{{.*}}, %{{.*}}] : memref<66x16xf16>

#conv = loc("conv")
func.func @main(%a: memref<64x16xf16>, %w: memref<32x3x16xf16>, %b: memref<64x32xf32>, %c: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<66x16xf16>
  affine.for %i = 0 to 66 {
    affine.for %j = 0 to 16 {
      affine.store %none, %p[%i, %j] : memref<66x16xf16> loc(#conv)
    }
  }
  affine.for %o = 0 to 64 {
    affine.for %n = 0 to 32 {
      %s = affine.for %k = 0 to 3 iter_args(%t = %zero) -> (f32) {
        %u = affine.for %j = 0 to 16 iter_args(%y = %t) -> (f32) {
          %x = affine.load %p[%o + %k, %j] : memref<66x16xf16>
          %z = affine.load %w[%n, %k, %j] : memref<32x3x16xf16>
          %g = arith.extf %x : f16 to f32
          %h = arith.extf %z : f16 to f32
          %m = arith.mulf %g, %h fastmath<reassoc,contract> : f32
          %e = arith.addf %y, %m fastmath<reassoc,contract> : f32
          affine.yield %e : f32
        }
        affine.yield %u : f32
      }
      affine.store %s, %b[%o, %n] : memref<64x32xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 16 {
      %x = affine.load %a[%i, %j] : memref<64x16xf16>
      affine.store %x, %p[%i + 1, %j] : memref<66x16xf16> loc(#conv)
    }
  }
  affine.for %o = 0 to 64 {
    affine.for %n = 0 to 32 {
      %s = affine.for %k = 0 to 3 iter_args(%t = %zero) -> (f32) {
        %u = affine.for %j = 0 to 16 iter_args(%y = %t) -> (f32) {
          %x = affine.load %p[%o + %k, %j] : memref<66x16xf16>
          %z = affine.load %w[%n, %k, %j] : memref<32x3x16xf16>
          %g = arith.extf %x : f16 to f32
          %h = arith.extf %z : f16 to f32
          %m = arith.mulf %g, %h fastmath<reassoc,contract> : f32
          %e = arith.addf %y, %m fastmath<reassoc,contract> : f32
          affine.yield %e : f32
        }
        affine.yield %u : f32
      }
      affine.store %s, %c[%o, %n] : memref<64x32xf32>
    }
  }
  return
}
