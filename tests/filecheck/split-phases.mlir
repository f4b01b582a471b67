// PASSES: split-phases
//
// A transposed convolution of stride 2: every other product is one with a zero between the input's
// elements. Even results meet one half of the window, odd ones the other half. Their elements get a
// buffer of their own, with the zeros around them. The same sums over zeros that the
// program stored stay as they are.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     %[[Q:.*]] = memref.alloc() : memref<16x10xf32>
// CHECK-DAG:     %[[W:.*]] = memref.alloc() : memref<16x4x24xf32>
// CHECK-DAG:     %[[OWN:.*]] = memref.alloc() : memref<16x19xf32>
// CHECK:         affine.for %[[C:.*]] = 0 to 16 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 10 {
// CHECK:             affine.store %{{.*}}, %[[Q]][%[[C]], %[[I]]]
// CHECK:         affine.for %[[C:.*]] = 0 to 16 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 8 {
// CHECK:             affine.store %{{.*}}, %[[Q]][%[[C]], %[[I]] + 1]
// CHECK:         affine.store %{{.*}}, %[[W]][%{{.*}}, %{{.*}}, %{{.*}}]
// CHECK:         affine.for %[[F:.*]] = 0 to 24 {
// CHECK-NEXT:      affine.for %[[O:.*]] = 0 to 8 {
// CHECK:             affine.for %[[C:.*]] = 0 to 16 iter_args(
// CHECK:               affine.for %[[K:.*]] = 0 to 2 iter_args(
// CHECK-NEXT:            affine.load %[[Q]][%[[C]], %[[O]] + %[[K]]]
// CHECK-NEXT:            affine.load %[[W]][%[[C]], %[[K]] * 2, %[[F]]]
// CHECK:             affine.store %{{.*}}, %arg2[%[[F]], %[[O]] * 2]
// CHECK:         affine.for %[[F:.*]] = 0 to 24 {
// CHECK-NEXT:      affine.for %[[O:.*]] = 0 to 8 {
// CHECK:             affine.for %[[C:.*]] = 0 to 16 iter_args(
// CHECK:               affine.for %[[K:.*]] = 0 to 2 iter_args(
// CHECK-NEXT:            affine.load %[[Q]][%[[C]], %[[O]] + %[[K]] + 1]
// CHECK-NEXT:            affine.load %[[W]][%[[C]], %[[K]] * 2 + 1, %[[F]]]
// CHECK:             affine.store %{{.*}}, %arg2[%[[F]], %[[O]] * 2 + 1]
// CHECK:         affine.store %{{.*}}, %[[OWN]][%{{.*}}, %{{.*}} * 2 + 2]
// CHECK:         affine.for %{{.*}} = 0 to 24 {
// CHECK-NEXT:      affine.for %[[O:.*]] = 0 to 16 {
// CHECK:               affine.for %[[K:.*]] = 0 to 4 iter_args(
// CHECK-NEXT:            affine.load %[[OWN]][%{{.*}}, %[[O]] + %[[K]]]

module {
  func.func @main(%x: memref<16x8xf32>, %w: memref<16x24x4xf32>, %y: memref<24x16xf32>, %z: memref<24x16xf32>) {
    %zero = arith.constant 0.0 : f32
    %p = memref.alloc() : memref<16x19xf32>
    %own = memref.alloc() : memref<16x19xf32>
    affine.for %c = 0 to 16 { affine.for %i = 0 to 19 {
      %none = arith.constant 0.0 : f32
      affine.store %none, %p[%c, %i] {polyblocks.padding = array<i64: 1>} : memref<16x19xf32>
    } }
    affine.for %c = 0 to 16 { affine.for %i = 0 to 8 {
      %v = affine.load %x[%c, %i] : memref<16x8xf32>
      affine.store %v, %p[%c, 2 * %i + 2] : memref<16x19xf32>
    } }
    affine.for %f = 0 to 24 { affine.for %o = 0 to 16 {
      %s = affine.for %c = 0 to 16 iter_args(%a = %zero) -> f32 {
        %t = affine.for %k = 0 to 4 iter_args(%b = %a) -> f32 {
          %l = affine.load %p[%c, %o + %k] {polyblocks.padding = array<i64: 1>} : memref<16x19xf32>
          %r = affine.load %w[%c, %f, %k] : memref<16x24x4xf32>
          %m = arith.mulf %l, %r fastmath<reassoc,contract> : f32
          %n = arith.addf %b, %m fastmath<reassoc,contract> : f32
          affine.yield %n : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %y[%f, %o] : memref<24x16xf32>
    } }
    affine.for %c = 0 to 16 { affine.for %i = 0 to 19 {
      %none = arith.constant 0.0 : f32
      affine.store %none, %own[%c, %i] : memref<16x19xf32>
    } }
    affine.for %c = 0 to 16 { affine.for %i = 0 to 8 {
      %v = affine.load %x[%c, %i] : memref<16x8xf32>
      affine.store %v, %own[%c, 2 * %i + 2] : memref<16x19xf32>
    } }
    affine.for %f = 0 to 24 { affine.for %o = 0 to 16 {
      %s = affine.for %c = 0 to 16 iter_args(%a = %zero) -> f32 {
        %t = affine.for %k = 0 to 4 iter_args(%b = %a) -> f32 {
          %l = affine.load %own[%c, %o + %k] : memref<16x19xf32>
          %r = affine.load %w[%c, %f, %k] : memref<16x24x4xf32>
          %m = arith.mulf %l, %r fastmath<reassoc,contract> : f32
          %n = arith.addf %b, %m fastmath<reassoc,contract> : f32
          affine.yield %n : f32
        }
        affine.yield %t : f32
      }
      affine.store %s, %z[%f, %o] : memref<24x16xf32>
    } }
    return
  }
}
