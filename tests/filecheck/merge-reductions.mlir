// PASSES: classify-nests,merge-reductions
//
// What two coordinates are multiplied with is computed in the one sweep that sums both.

// CHECK-LABEL: func.func @main
// CHECK-NOT:     memref.alloc()
// CHECK:         affine.for %[[I:.*]] = 0 to 300 {
// CHECK:           affine.for %[[K:.*]] = 0 to 500 iter_args({{.*}}) -> (f32, f32) {
// CHECK:             math.exp
// CHECK-NOT:         math.exp
// CHECK:             affine.load %{{.*}}[%[[K]], 0]
// CHECK:             affine.load %{{.*}}[%[[K]], 1]
// CHECK:           affine.store %{{.*}}[%[[I]], 0]
// CHECK:           affine.store %{{.*}}[%[[I]], 1]
//
// Neighbours that sum over the same values are one sweep as well.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 300 {
// CHECK:           affine.for %[[K:.*]] = 0 to 500 iter_args({{.*}}) -> (f32, f32) {
// CHECK:             math.sin
// CHECK-NOT:         math.sin
//
// What something else reads is made for all; and so is what the short loop reads anew each time.
//
// CHECK:         math.cos
// CHECK:         affine.for %{{.*}} = 0 to 300 {
// CHECK:           affine.for %{{.*}} = 0 to 2 {
// CHECK:             affine.for %{{.*}} = 0 to 500 iter_args({{.*}}) -> (f32) {
func.func @main(%a: memref<300x500xf32>, %x: memref<500x2xf32>, %d: memref<300x2xf32>, %u: memref<300xf32>, %v: memref<300xf32>, %e: memref<300x2xf32>, %all: memref<300x2xf32>) {
  %w = memref.alloc() : memref<300x500xf32>
  affine.for %i = 0 to 300 {
    affine.for %k = 0 to 500 {
      %0 = affine.load %a[%i, %k] : memref<300x500xf32>
      %1 = math.exp %0 : f32
      affine.store %1, %w[%i, %k] : memref<300x500xf32>
    }
  }
  affine.for %i = 0 to 300 {
    affine.for %c = 0 to 2 {
      %z = arith.constant 0.0 : f32
      %r = affine.for %k = 0 to 500 iter_args(%s = %z) -> (f32) {
        %0 = affine.load %w[%i, %k] : memref<300x500xf32>
        %1 = affine.load %x[%k, %c] : memref<500x2xf32>
        %y = affine.load %x[%i, %c] : memref<500x2xf32>
        %2 = arith.subf %1, %y : f32
        %3 = arith.mulf %0, %2 : f32
        %4 = arith.addf %s, %3 fastmath<reassoc> : f32
        affine.yield %4 : f32
      }
      affine.store %r, %d[%i, %c] : memref<300x2xf32>
    }
  }
  %t = memref.alloc() : memref<300x500xf32>
  affine.for %i = 0 to 300 {
    affine.for %k = 0 to 500 {
      %0 = affine.load %a[%i, %k] : memref<300x500xf32>
      %1 = math.sin %0 : f32
      affine.store %1, %t[%i, %k] : memref<300x500xf32>
    }
  }
  affine.for %i = 0 to 300 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 500 iter_args(%s = %z) -> (f32) {
      %0 = affine.load %t[%i, %k] : memref<300x500xf32>
      %1 = affine.load %a[%i, %k] : memref<300x500xf32>
      %2 = arith.maximumf %0, %1 : f32
      %3 = arith.addf %s, %2 fastmath<reassoc> : f32
      affine.yield %3 : f32
    }
    affine.store %r, %u[%i] : memref<300xf32>
  }
  affine.for %i = 0 to 300 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 500 iter_args(%s = %z) -> (f32) {
      %0 = affine.load %t[%i, %k] : memref<300x500xf32>
      %1 = affine.load %a[%i, %k] : memref<300x500xf32>
      %2 = arith.minimumf %0, %1 : f32
      %3 = arith.addf %s, %2 fastmath<reassoc> : f32
      affine.yield %3 : f32
    }
    affine.store %r, %v[%i] : memref<300xf32>
  }
  %h = memref.alloc() : memref<2x500xf32>
  affine.for %c = 0 to 2 {
    affine.for %k = 0 to 500 {
      %0 = affine.load %x[%k, %c] : memref<500x2xf32>
      %1 = math.cos %0 : f32
      affine.store %1, %h[%c, %k] : memref<2x500xf32>
    }
  }
  affine.for %i = 0 to 300 {
    affine.for %c = 0 to 2 {
      %z = arith.constant 0.0 : f32
      %r = affine.for %k = 0 to 500 iter_args(%s = %z) -> (f32) {
        %0 = affine.load %h[%c, %k] : memref<2x500xf32>
        %1 = affine.load %a[%i, %k] : memref<300x500xf32>
        %2 = arith.maximumf %0, %1 : f32
        %3 = arith.addf %s, %2 fastmath<reassoc> : f32
        affine.yield %3 : f32
      }
      affine.store %r, %e[%i, %c] : memref<300x2xf32>
    }
  }
  return
}
