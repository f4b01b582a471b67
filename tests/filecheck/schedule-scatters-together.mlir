// PASSES: schedule-scatters
//
// Sums and counts of the same cells: the updates of both are made in one loop, whose cell is checked
// once, and the copies of each are combined where it stood.

// CHECK-LABEL: @main
// CHECK:         affine.for %[[T:.*]] = 0 to 8 {
// CHECK:           affine.for %[[D:.*]] = 0 to 256 {
// CHECK:             affine.store %{{.*}}, %[[SUMS:.*]][%[[T]], %[[D]]] : memref<8x256xf32>
// CHECK:           affine.for %[[D:.*]] = 0 to 256 {
// CHECK:             affine.store %{{.*}}, %[[COUNTS:.*]][%[[T]], %[[D]]] : memref<8x256xi32>
// CHECK:           affine.for %[[I:.*]] = 0 to
// CHECK:             cf.assert
// CHECK-NOT:         cf.assert
// CHECK:             memref.store %{{.*}}, %[[SUMS]]
// CHECK:             memref.store %{{.*}}, %[[COUNTS]]
// CHECK:         affine.for %[[D:.*]] = 0 to 256 {
// CHECK:           affine.load %[[SUMS]][7, %[[D]]]
// CHECK:         affine.for %[[D:.*]] = 0 to 256 {
// CHECK:           affine.load %[[COUNTS]][7, %[[D]]]
//
// Updates that are what the ones before have made wait for these.
//
// CHECK:         affine.for %[[T:.*]] = 0 to 8 {
// CHECK:           affine.store %{{.*}}, %[[LAST:.*]][%[[T]], %{{.*}}] : memref<8x256xi32>
func.func @main(%sums: memref<256xf32>, %counts: memref<256xi32>, %values: memref<999999xf32>,
                %cells: memref<999999xindex>, %again: memref<256xi32>) {
  affine.for %i = 0 to 999999 {
    %b = affine.load %cells[%i] : memref<999999xindex>
    %c256 = arith.constant 256 : index
    %ok = arith.cmpi ult, %b, %c256 : index
    cf.assert %ok, "index out of range"
    %v = affine.load %values[%i] : memref<999999xf32>
    %old = memref.load %sums[%b] : memref<256xf32>
    %new = arith.addf %old, %v fastmath<reassoc> : f32
    memref.store %new, %sums[%b] : memref<256xf32>
  }
  affine.for %i = 0 to 999999 {
    %b = affine.load %cells[%i] : memref<999999xindex>
    %c256 = arith.constant 256 : index
    %ok = arith.cmpi ult, %b, %c256 : index
    cf.assert %ok, "index out of range"
    %one = arith.constant 1 : i32
    %old = memref.load %counts[%b] : memref<256xi32>
    %new = arith.addi %old, %one : i32
    memref.store %new, %counts[%b] : memref<256xi32>
  }
  affine.for %i = 0 to 999999 {
    %b = affine.load %cells[%i] : memref<999999xindex>
    %n = affine.load %counts[%i mod 256] : memref<256xi32>
    %old = memref.load %again[%b] : memref<256xi32>
    %new = arith.addi %old, %n : i32
    memref.store %new, %again[%b] : memref<256xi32>
  }
  return
}
