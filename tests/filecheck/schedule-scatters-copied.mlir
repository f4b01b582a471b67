// PASSES: schedule-scatters
// TARGET: gpu
//
// What writes all of the destination just before is part of the nest that stores what has won.

// CHECK-LABEL: @main
// CHECK:         affine.for %{{.*}} = 0 to 1000 {
// CHECK-NOT:       affine.load
// CHECK:           affine.store %{{.*}}, %[[BOARD:.*]][
// CHECK:         affine.for %{{.*}} = 0 to 99999 {
// CHECK:         affine.for %[[D:.*]] = 0 to 1000 {
// CHECK-DAG:       affine.load %[[BOARD]][%[[D]]]
// CHECK-DAG:       %[[OLD:.*]] = affine.load %arg3[%[[D]]]
// CHECK:           %[[X:.*]] = arith.select %{{.*}}, %{{.*}}, %[[OLD]]
// CHECK:           affine.store %[[X]], %arg2[%[[D]]]
// CHECK-NOT:     affine.for
func.func @main(%updates: memref<99999xf32>, %rows: memref<99999xindex>, %x: memref<1000xf32>,
                  %from: memref<1000xf32>) {
  affine.for %i = 0 to 1000 {
    %v = affine.load %from[%i] : memref<1000xf32>
    affine.store %v, %x[%i] : memref<1000xf32>
  }
  affine.for %i = 0 to 99999 {
    %u = affine.load %updates[%i] : memref<99999xf32>
    %r = affine.load %rows[%i] : memref<99999xindex>
    memref.store %u, %x[%r] : memref<1000xf32>
  }
  func.return
}
