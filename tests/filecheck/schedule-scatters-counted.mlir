// PASSES: schedule-scatters,map-parallelism
//
// One loop counts all updates, and computes the row of each: threads share the rows, whose order in
// memory is kept.

// CHECK-LABEL: @main
// CHECK:         affine.parallel (%[[R:.*]]) = (0) to (16384) {
// CHECK:           affine.for %[[J:.*]] = 0 to 256 {
// CHECK-NOT:         arith.divui
// CHECK:             memref.load %arg2[%{{.*}}, %[[C:.*]]]
// CHECK:             memref.store %{{.*}}, %arg2[%{{.*}}, %[[C]]]
//
// A row that the loop does not have a whole number of, and one that may be outside: no rows.
//
// CHECK:         affine.for %{{.*}} = 0 to 4194304 {
// CHECK:           memref.store %{{.*}}, %arg3[
// CHECK:         affine.parallel (%{{.*}}) = (0) to (8) {
// CHECK:           affine.for %{{.*}} = 0 to 524288 {
func.func @main(%updates: memref<4194304xf32>, %columns: memref<4194304xindex>, %table: memref<16384x256xf32>,
                %odd: memref<16778x256xf32>, %small: memref<16000x256xf32>) {
  %c256 = arith.constant 256 : index
  %c250 = arith.constant 250 : index
  affine.for %i = 0 to 4194304 {
    %u = affine.load %updates[%i] : memref<4194304xf32>
    %r = arith.divui %i, %c256 : index
    %c = affine.load %columns[%i] : memref<4194304xindex>
    %old = memref.load %table[%r, %c] : memref<16384x256xf32>
    %new = arith.addf %old, %u fastmath<reassoc> : f32
    memref.store %new, %table[%r, %c] : memref<16384x256xf32>
  }
  affine.for %i = 0 to 4194304 {
    %u = affine.load %updates[%i] : memref<4194304xf32>
    %r = arith.divui %i, %c250 : index
    %c = affine.load %columns[%i] : memref<4194304xindex>
    %old = memref.load %odd[%r, %c] : memref<16778x256xf32>
    %new = arith.addf %old, %u fastmath<reassoc> : f32
    memref.store %new, %odd[%r, %c] : memref<16778x256xf32>
  }
  affine.for %i = 0 to 4194304 {
    %u = affine.load %updates[%i] : memref<4194304xf32>
    %r = arith.divui %i, %c256 : index
    %c = affine.load %columns[%i] : memref<4194304xindex>
    %old = memref.load %small[%r, %c] : memref<16000x256xf32>
    %new = arith.addf %old, %u fastmath<reassoc> : f32
    memref.store %new, %small[%r, %c] : memref<16000x256xf32>
  }
  return
}
