// PASSES: schedule-scatters
// TARGET: gpu
//
// The last of the stores to an element stays: numbers in front of bits, of which the largest is
// found by atomic operations.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[D:.*]] = 0 to 1000 {
// CHECK:           affine.store %{{.*}}, %[[BOARD:.*]][%[[D]]] : memref<1000xi64>
// CHECK:         affine.for %[[I:.*]] = 0 to 99999 {
// CHECK:           %[[R:.*]] = affine.load %arg1[%[[I]]]
// CHECK:           %[[N:.*]] = arith.shli
// CHECK:           %[[B:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK:           %[[W:.*]] = arith.extui %[[B]] : i32 to i64
// CHECK:           %[[MINE:.*]] = arith.ori %[[N]], %[[W]]
// CHECK:           %[[BEFORE:.*]] = memref.load %[[BOARD]][%[[R]]]
// CHECK:           %[[MOST:.*]] = arith.maxsi %[[BEFORE]], %[[MINE]]
// CHECK:           memref.store %[[MOST]], %[[BOARD]][%[[R]]]
// CHECK:         affine.for %[[D:.*]] = 0 to 1000 {
// CHECK:           %[[FOUND:.*]] = affine.load %[[BOARD]][%[[D]]]
// CHECK:           %[[MET:.*]] = arith.cmpi ne, %[[FOUND]]
// CHECK:           %[[X:.*]] = arith.select %[[MET]]
// CHECK:           affine.store %[[X]], %arg2[%[[D]]]
//
// Few updates are made one after the other, and those that look at what is there, too.
//
// CHECK:         affine.for %{{.*}} = 0 to 10 {
// CHECK:           memref.store %{{.*}}, %arg2
// CHECK:         affine.for %{{.*}} = 0 to 99999 {
// CHECK:           memref.load %arg2
// CHECK:           memref.store %{{.*}}, %arg2
// CHECK-NOT:     affine.for
func.func @main(%updates: memref<99999xf32>, %rows: memref<99999xindex>, %x: memref<1000xf32>) {
  affine.for %i = 0 to 99999 {
    %u = affine.load %updates[%i] : memref<99999xf32>
    %r = affine.load %rows[%i] : memref<99999xindex>
    memref.store %u, %x[%r] : memref<1000xf32>
  }
  affine.for %i = 0 to 10 {
    %u = affine.load %updates[%i] : memref<99999xf32>
    %r = affine.load %rows[%i] : memref<99999xindex>
    memref.store %u, %x[%r] : memref<1000xf32>
  }
  affine.for %i = 0 to 99999 {
    %u = affine.load %updates[%i] : memref<99999xf32>
    %r = affine.load %rows[%i] : memref<99999xindex>
    %old = memref.load %x[%r] : memref<1000xf32>
    %new = arith.subf %old, %u : f32
    memref.store %new, %x[%r] : memref<1000xf32>
  }
  func.return
}
