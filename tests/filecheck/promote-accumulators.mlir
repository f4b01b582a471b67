// PASSES: promote-accumulators
// ARCH: x86-64-v4
//
// The length of each row is added up in a register, between other loops.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[K:.*]] = 0 to 64 {
// CHECK:           affine.store
// CHECK:           %[[S:.*]] = affine.load %{{.*}}[0]
// CHECK:           %[[T:.*]] = affine.for %[[I:.*]] = #{{.*}}(%[[K]]) to 64 iter_args(%[[ACC:.*]] = %[[S]]) -> (f32) {
// CHECK:             %[[X:.*]] = affine.load %{{.*}}[%[[K]], %[[I]]]
// CHECK:             arith.addf %[[ACC]], %[[X]]
// CHECK:             affine.yield
// CHECK:           }
// CHECK:           affine.store %[[T]], %{{.*}}[0]
// CHECK:           affine.for %{{.*}} = #{{.*}}(%[[K]]) to 64 {
// CHECK:         polyblocks.kernel = "lengths"
//
// An element that may not be there stays where it is: the loop may have no iterations. So does one
// that is read elsewhere, too.
//
// CHECK:         affine.for %[[K:.*]] = 0 to 64 {
// CHECK-NOT:       iter_args
// CHECK:         polyblocks.kernel = "behind"
// CHECK-NOT:       iter_args
// CHECK:         polyblocks.kernel = "read"
//
// Iterations around that are lanes go through the loop together: each carries an element of its own.
//
// CHECK:         affine.for %[[L:.*]] = 0 to 16 {
// CHECK:           %[[S:.*]] = affine.load %{{.*}}[%[[L]]]
// CHECK:           affine.for %{{.*}} = 0 to 64 iter_args(%{{.*}} = %[[S]]) -> (f32) {
// CHECK:           affine.store %{{.*}}, %{{.*}}[%[[L]]]
// CHECK:         polyblocks.lanes = 16
func.func @main(%a: memref<64x64xf32>, %s: memref<1xf32>, %t: memref<64xf32>, %u: memref<16xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %k = 0 to 64 {
    affine.store %zero, %s[0] : memref<1xf32>
    affine.for %i = affine_map<(d0) -> (d0)>(%k) to 64 {
      %x = affine.load %a[%k, %i] : memref<64x64xf32>
      %0 = affine.load %s[0] : memref<1xf32>
      %1 = arith.addf %0, %x : f32
      affine.store %1, %s[0] : memref<1xf32>
    }
    %2 = affine.load %s[0] : memref<1xf32>
    affine.for %i = affine_map<(d0) -> (d0)>(%k) to 64 {
      %x = affine.load %a[%k, %i] : memref<64x64xf32>
      %3 = arith.divf %x, %2 : f32
      affine.store %3, %a[%k, %i] : memref<64x64xf32>
    }
  } {polyblocks.kernel = "lengths", polyblocks.kind = "sequential", polyblocks.sources = []}
  affine.for %k = 0 to 64 {
    affine.for %i = affine_map<(d0) -> (d0 + 1)>(%k) to 64 {
      %x = affine.load %a[%k, %i] : memref<64x64xf32>
      %0 = affine.load %t[%k + 1] : memref<64xf32>
      %1 = arith.addf %0, %x : f32
      affine.store %1, %t[%k + 1] : memref<64xf32>
    }
    affine.for %i = 0 to 64 {
      affine.store %zero, %a[%k, %i] : memref<64x64xf32>
    }
  } {polyblocks.kernel = "behind", polyblocks.kind = "sequential", polyblocks.sources = []}
  affine.for %k = 0 to 64 {
    affine.for %i = 0 to 64 {
      %x = affine.load %t[%i] : memref<64xf32>
      %0 = affine.load %t[%k] : memref<64xf32>
      %1 = arith.addf %0, %x : f32
      affine.store %1, %t[%k] : memref<64xf32>
    }
    affine.for %i = 0 to 64 {
      affine.store %zero, %a[%k, %i] : memref<64x64xf32>
    }
  } {polyblocks.kernel = "read", polyblocks.kind = "sequential", polyblocks.sources = []}
  affine.for %l = 0 to 16 {
    affine.for %i = 0 to 64 {
      %x = affine.load %a[%i, %l] : memref<64x64xf32>
      %0 = affine.load %u[%l] : memref<16xf32>
      %1 = arith.addf %0, %x : f32
      affine.store %1, %u[%l] : memref<16xf32>
    }
  } {polyblocks.lanes = 16 : i64, polyblocks.kernel = "lanes", polyblocks.kind = "sequential", polyblocks.sources = []}
  return
}
