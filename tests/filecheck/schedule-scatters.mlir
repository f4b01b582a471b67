// PASSES: schedule-scatters,map-parallelism
//
// Eight threads. Rows: each takes a part of the columns of all updates, whole cache lines.

// CHECK-LABEL: @main
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (4) {
// CHECK:           affine.for %[[I:.*]] = 0 to 200000 {
// CHECK:             affine.for %[[J:.*]] = 0 to 16 {
// CHECK:               affine.load %arg0[%[[I]], %[[J]] + %[[T]] * 16]
// CHECK:               memref.store
//
// A histogram: every thread counts in a copy, which starts at zero; the copies are added up.
//
// CHECK:         affine.parallel (%[[T:.*]]) = (0) to (8) {
// CHECK:           affine.for %[[D:.*]] = 0 to 256 {
// CHECK:             affine.store %{{.*}}, %[[COPY:.*]][%[[T]], %[[D]]] : memref<8x256xi32>
// CHECK:           affine.for %[[I:.*]] = 0 to min #{{.*}}(%[[T]]) {
// CHECK:             memref.load %[[COPY]][%{{.*}}, %{{.*}}]
// CHECK:             memref.store %{{.*}}, %[[COPY]]
// CHECK:         affine.for %[[D:.*]] = 0 to 256 {
// CHECK:           affine.load %arg3[%[[D]]]
// CHECK:           affine.load %[[COPY]][0, %[[D]]]
// CHECK:           affine.load %[[COPY]][7, %[[D]]]
// CHECK:           affine.store %{{.*}}, %arg3[%[[D]]]
//
// Overwriting has an order, and few updates are not worth the threads.
//
// CHECK-NOT:     affine.parallel
// CHECK:         return
func.func @main(%updates: memref<200000x64xf32>, %rows: memref<200000xindex>,
                %table: memref<1000x64xf32>, %bins: memref<256xi32>,
                %values: memref<999999xindex>, %last: memref<256xindex>) {
  %one = arith.constant 1 : i32
  affine.for %i = 0 to 200000 {
    affine.for %j = 0 to 64 {
      %u = affine.load %updates[%i, %j] : memref<200000x64xf32>
      %r = affine.load %rows[%i] : memref<200000xindex>
      %old = memref.load %table[%r, %j] : memref<1000x64xf32>
      %new = arith.addf %old, %u : f32
      memref.store %new, %table[%r, %j] : memref<1000x64xf32>
    }
  }
  affine.for %i = 0 to 999999 {
    %b = affine.load %values[%i] : memref<999999xindex>
    %old = memref.load %bins[%b] : memref<256xi32>
    %new = arith.addi %old, %one : i32
    memref.store %new, %bins[%b] : memref<256xi32>
  }
  affine.for %i = 0 to 999999 {
    %b = affine.load %values[%i] : memref<999999xindex>
    memref.store %b, %last[%b] : memref<256xindex>
  }
  affine.for %i = 0 to 100 {
    %b = affine.load %values[%i] : memref<999999xindex>
    %old = memref.load %bins[%b] : memref<256xi32>
    %new = arith.addi %old, %one : i32
    memref.store %new, %bins[%b] : memref<256xi32>
  }
  func.return
}
