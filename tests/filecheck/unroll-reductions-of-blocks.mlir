// PASSES: unroll-reductions
// TARGET: gpu
//
// On a chip with blocks of threads a window of 7 x 7 is a stencil, where it is all that an element is
// computed of; in a loop over channels it would take registers in each of its steps. The mean of a
// whole image is no window.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[C:.*]] = 0 to 8 {
// CHECK:           affine.for
// CHECK:             affine.for
// CHECK-NOT:           affine.for
// CHECK-COUNT-49:      arith.mulf
// CHECK:               affine.store %{{.*}}, %arg2[%[[C]]
// CHECK:         affine.for %{{.*}} = 0 to 8 iter_args
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 7 iter_args
// CHECK:         affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 7 iter_args
func.func @main(%a: memref<8x38x70xf32>, %w: memref<8x7x7xf32>, %b: memref<8x32x64xf32>, %c: memref<32x64xf32>, %d: memref<64x7x7xf32>, %e: memref<64xf32>) {
  %z = arith.constant 0.0 : f32
  affine.for %k = 0 to 8 {
    affine.for %i = 0 to 32 {
      affine.for %j = 0 to 64 {
        %s = affine.for %p = 0 to 7 iter_args(%t = %z) -> (f32) {
          %u = affine.for %q = 0 to 7 iter_args(%v = %t) -> (f32) {
            %x = affine.load %a[%k, %i + %p, %j + %q] : memref<8x38x70xf32>
            %y = affine.load %w[%k, %p, %q] : memref<8x7x7xf32>
            %m = arith.mulf %x, %y : f32
            %n = arith.addf %v, %m fastmath<reassoc> : f32
            affine.yield %n : f32
          }
          affine.yield %u : f32
        }
        affine.store %s, %b[%k, %i, %j] : memref<8x32x64xf32>
      }
    }
  }
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 64 {
      %s = affine.for %k = 0 to 8 iter_args(%r = %z) -> (f32) {
        %o = affine.for %p = 0 to 7 iter_args(%t = %r) -> (f32) {
          %u = affine.for %q = 0 to 7 iter_args(%v = %t) -> (f32) {
            %x = affine.load %a[%k, %i + %p, %j + %q] : memref<8x38x70xf32>
            %y = affine.load %w[%k, %p, %q] : memref<8x7x7xf32>
            %m = arith.mulf %x, %y : f32
            %n = arith.addf %v, %m fastmath<reassoc> : f32
            affine.yield %n : f32
          }
          affine.yield %u : f32
        }
        affine.yield %o : f32
      }
      affine.store %s, %c[%i, %j] : memref<32x64xf32>
    }
  }
  affine.for %i = 0 to 64 {
    %s = affine.for %p = 0 to 7 iter_args(%t = %z) -> (f32) {
      %u = affine.for %q = 0 to 7 iter_args(%v = %t) -> (f32) {
        %x = affine.load %d[%i, %p, %q] : memref<64x7x7xf32>
        %n = arith.addf %v, %x fastmath<reassoc> : f32
        affine.yield %n : f32
      }
      affine.yield %u : f32
    }
    affine.store %s, %e[%i] : memref<64xf32>
  }
  return
}
