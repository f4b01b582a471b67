// PASSES: absorb-margins
// TARGET: gpu
//
// A convolution whose padding an operation stored: the copy with zeros around it is gone, and the
// loads of the image say where it ends. What is computed, not copied, is stored without the zeros.
// A product that no unit computes keeps its padding.

// CHECK-DAG:   #[[SET:.*]] = affine_set<(d0, d1) : (d0 + d1 - 1 >= 0, -d0 - d1 + 64 >= 0)>
// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[OWN:.*]] = memref.alloc() : memref<64x16xf16>
// CHECK-DAG:     %[[WIDE:.*]] = memref.alloc() : memref<66x16xf32>
// CHECK-NOT:     memref<66x16xf16>
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK:           affine.for %[[C:.*]] = 0 to 16 {
// CHECK:             math.absf
// CHECK:             affine.store %{{.*}}, %[[OWN]][%[[I]], %[[C]]]
// CHECK:             affine.for %[[K:.*]] = 0 to 3 iter_args(
// CHECK-NEXT:          %{{.*}} = affine.for %[[C:.*]] = 0 to 16 iter_args(
// CHECK-NEXT:            %[[X:.*]] = affine.if #[[SET]](%[[O:.*]], %[[K]]) -> f16 {
// CHECK-NEXT:              %[[V:.*]] = affine.load %arg0[%[[O]] + %[[K]] - 1, %[[C]]] : memref<64x16xf16>
// CHECK-NEXT:              affine.yield %[[V]]
// CHECK-NEXT:            } else {
// CHECK-NEXT:              %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-NEXT:              affine.yield %[[ZERO]]
// CHECK:                 arith.extf %[[X]]
// CHECK:         affine.if
// CHECK-NEXT:      affine.load %[[OWN]][%{{.*}} + %{{.*}} - 1, %{{.*}}]
// CHECK:         affine.load %[[WIDE]][%{{.*}} + %{{.*}}, %{{.*}}] : memref<66x16xf32>

#conv = loc("conv")
func.func @main(%a: memref<64x16xf16>, %f: memref<64x16xf32>, %w: memref<32x3x16xf16>,
                %v: memref<32x3x16xf32>, %b: memref<64x32xf32>, %c: memref<64x32xf32>,
                %d: memref<64x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : f16
  %p = memref.alloc() : memref<66x16xf16>
  %q = memref.alloc() : memref<66x16xf16>
  %r = memref.alloc() : memref<66x16xf32>
  affine.for %i = 0 to 16 {
    affine.store %none, %p[0, %i] : memref<66x16xf16> loc(#conv)
  }
  affine.for %i = 0 to 16 {
    affine.store %none, %p[65, %i] : memref<66x16xf16> loc(#conv)
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 16 {
      %x = affine.load %a[%i, %j] : memref<64x16xf16>
      affine.store %x, %p[%i + 1, %j] : memref<66x16xf16> loc(#conv)
    }
  }
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 16 {
      affine.store %none, %q[%i * 65, %j] : memref<66x16xf16> loc(#conv)
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 16 {
      %x = affine.load %a[%i, %j] : memref<64x16xf16>
      %y = math.absf %x : f16
      affine.store %y, %q[%i + 1, %j] : memref<66x16xf16> loc(#conv)
    }
  }
  affine.for %i = 0 to 2 {
    affine.for %j = 0 to 16 {
      affine.store %zero, %r[%i * 65, %j] : memref<66x16xf32> loc(#conv)
    }
  }
  affine.for %i = 0 to 64 {
    affine.for %j = 0 to 16 {
      %x = affine.load %f[%i, %j] : memref<64x16xf32>
      affine.store %x, %r[%i + 1, %j] : memref<66x16xf32> loc(#conv)
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
  affine.for %o = 0 to 64 {
    affine.for %n = 0 to 32 {
      %s = affine.for %k = 0 to 3 iter_args(%t = %zero) -> (f32) {
        %u = affine.for %j = 0 to 16 iter_args(%y = %t) -> (f32) {
          %x = affine.load %q[%o + %k, %j] : memref<66x16xf16>
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
  affine.for %o = 0 to 64 {
    affine.for %n = 0 to 32 {
      %s = affine.for %k = 0 to 3 iter_args(%t = %zero) -> (f32) {
        %u = affine.for %j = 0 to 16 iter_args(%y = %t) -> (f32) {
          %x = affine.load %r[%o + %k, %j] : memref<66x16xf32>
          %z = affine.load %v[%n, %k, %j] : memref<32x3x16xf32>
          %m = arith.mulf %x, %z fastmath<reassoc,contract> : f32
          %e = arith.addf %y, %m fastmath<reassoc,contract> : f32
          affine.yield %e : f32
        }
        affine.yield %u : f32
      }
      affine.store %s, %d[%o, %n] : memref<64x32xf32>
    }
  }
  return
}
