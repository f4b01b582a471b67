// PASSES: hoist-factors
// TARGET: gpu
//
// What was converted, scaled and stored for a product is multiplied as it was, and the sum scaled.
// A factor out of bounds stays.

// CHECK-LABEL: func.func @main
// CHECK:         %[[KEPT:.*]] = memref.alloc
// CHECK-NOT:     memref.alloc
// CHECK:           %[[R:.*]] = affine.for {{.*}} iter_args
// CHECK-NEXT:        %[[X:.*]] = affine.load %arg0
// CHECK-NEXT:        %[[W:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK-NOT:         3.000000e-01
// CHECK:             arith.mulf %[[W]]
// CHECK:           }
// CHECK:           %[[C:.*]] = arith.constant 3.000000e-01
// CHECK-NEXT:      arith.mulf %[[R]], %[[C]] fastmath<reassoc,contract>
// CHECK:         1.000000e+30
// CHECK:         affine.store %{{.*}}, %[[KEPT]][
// CHECK:         affine.load %[[KEPT]]
func.func @main(%a: memref<64x64xf16>, %b: memref<64x64xf16>, %c: memref<64x64xf32>,
                %d: memref<64x64xf32>) {
  %z = arith.constant 0.0 : f32
  %f = arith.constant 0.3 : f32
  %g = arith.constant 1.0e30 : f32
  %s = memref.alloc() : memref<64x64xf32>
  %t = memref.alloc() : memref<64x64xf32>
  affine.for %i = 0 to 64 {
    affine.for %k = 0 to 64 {
      %x = affine.load %a[%i, %k] : memref<64x64xf16>
      %w = arith.extf %x : f16 to f32
      %y = arith.mulf %w, %f fastmath<reassoc,contract> : f32
      affine.store %y, %s[%i, %k] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %r = affine.for %k = 0 to 64 iter_args(%u = %z) -> (f32) {
        %x = affine.load %s[%i, %k] : memref<64x64xf32>
        %y = affine.load %b[%k, %j] : memref<64x64xf16>
        %w = arith.extf %y : f16 to f32
        %p = arith.mulf %x, %w fastmath<reassoc,contract> : f32
        %v = arith.addf %u, %p fastmath<reassoc,contract> : f32
        affine.yield %v : f32
      }
      affine.store %r, %c[%i, %j] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %k = 0 to 64 {
      %x = affine.load %a[%i, %k] : memref<64x64xf16>
      %w = arith.extf %x : f16 to f32
      %y = arith.mulf %w, %g fastmath<reassoc,contract> : f32
      affine.store %y, %t[%i, %k] : memref<64x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 64 {
      %r = affine.for %k = 0 to 64 iter_args(%u = %z) -> (f32) {
        %x = affine.load %t[%i, %k] : memref<64x64xf32>
        %y = affine.load %b[%k, %j] : memref<64x64xf16>
        %w = arith.extf %y : f16 to f32
        %p = arith.mulf %x, %w fastmath<reassoc,contract> : f32
        %v = arith.addf %u, %p fastmath<reassoc,contract> : f32
        affine.yield %v : f32
      }
      affine.store %r, %d[%i, %j] : memref<64x64xf32>
    }
  }
  return
}
