// PASSES: split-reductions
// TARGET: gpu
//
// Columns enough for all multiprocessors, and far too few for their threads: the predicted times of
// the kernels decide into how many parts.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[P:.*]] = 0 to [[N:[0-9]+]] {
// CHECK:           affine.for %[[J:.*]] = 0 to 320 {
// CHECK:             %[[S:.*]] = affine.for
// CHECK:             affine.store %[[S]], %[[PARTS:.*]][%[[P]], %[[J]]]
// CHECK:         affine.for %[[J:.*]] = 0 to 320 {
// CHECK:           affine.for %[[P:.*]] = 0 to
// CHECK:             affine.load %[[PARTS]][%[[P]], %[[J]]]
// CHECK:           affine.store %{{.*}}, %arg2[%[[J]]]
//
// Rows that a warp each sums up are enough.
//
// CHECK:         affine.for %{{.*}} = 0 to 32768 {
// CHECK:           affine.for %{{.*}} = 0 to 1024 iter_args
// CHECK-NOT:     affine.for
func.func @main(%a: memref<131040x320xf32>, %b: memref<32768x1024xf32>, %columns: memref<320xf32>, %rows: memref<32768xf32>) {
  %z = arith.constant 0.0 : f32
  affine.for %j = 0 to 320 {
    %s = affine.for %i = 0 to 131040 iter_args(%t = %z) -> (f32) {
      %x = affine.load %a[%i, %j] : memref<131040x320xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %s, %columns[%j] : memref<320xf32>
  }
  affine.for %i = 0 to 32768 {
    %s = affine.for %j = 0 to 1024 iter_args(%t = %z) -> (f32) {
      %x = affine.load %b[%i, %j] : memref<32768x1024xf32>
      %u = arith.addf %t, %x fastmath<reassoc> : f32
      affine.yield %u : f32
    }
    affine.store %s, %rows[%i] : memref<32768xf32>
  }
  func.return
}
