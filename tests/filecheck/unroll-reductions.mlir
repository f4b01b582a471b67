// PASSES: unroll-reductions
//
// A window of 2 x 3 is unrolled; a long reduction stays a loop, also where the last
// few of its elements are a loop of their own. The largest of a window may be either of two zeros.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NOT:       affine.for
// CHECK-COUNT-6:   arith.addf
// CHECK:           affine.store
// CHECK:         affine.for
// CHECK:           affine.for %{{.*}} = 0 to 100 iter_args
// CHECK:         affine.for %{{.*}} = 0 to 100 iter_args
// CHECK:           affine.for %{{.*}} = 0 to 3 iter_args
// CHECK-COUNT-3:   arith.maximumf %{{.*}}, %{{.*}} fastmath<nsz>
func.func @main(%a: memref<9x10xf32>, %b: memref<8xf32>, %c: memref<8x100xf32>,
                %d: memref<100x3xf32>, %e: memref<f32>) {
  affine.for %i = 0 to 8 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 2 iter_args(%s = %z) -> (f32) {
      %q = affine.for %l = 0 to 3 iter_args(%t = %s) -> (f32) {
        %x = affine.load %a[%i + %k, %l] : memref<9x10xf32>
        %u = arith.addf %t, %x : f32
        affine.yield %u : f32
      }
      affine.yield %q : f32
    }
    affine.store %r, %b[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %z = arith.constant 0.0 : f32
    %r = affine.for %k = 0 to 100 iter_args(%s = %z) -> (f32) {
      %x = affine.load %c[%i, %k] : memref<8x100xf32>
      %u = arith.addf %s, %x : f32
      affine.yield %u : f32
    }
    affine.store %r, %b[%i] : memref<8xf32>
  }
  %z = arith.constant 0.0 : f32
  %r = affine.for %k = 0 to 100 iter_args(%s = %z) -> (f32) {
    %q = affine.for %l = 0 to 3 iter_args(%t = %s) -> (f32) {
      %x = affine.load %d[%k, %l] : memref<100x3xf32>
      %u = arith.addf %t, %x : f32
      affine.yield %u : f32
    }
    affine.yield %q : f32
  }
  affine.store %r, %e[] : memref<f32>
  affine.for %i = 0 to 8 {
    %m = affine.for %k = 0 to 3 iter_args(%s = %z) -> (f32) {
      %x = affine.load %c[%i, %k] : memref<8x100xf32>
      %u = arith.maximumf %s, %x : f32
      affine.yield %u : f32
    }
    affine.store %m, %b[%i] : memref<8xf32>
  }
  return
}
