// PASSES: map-openmp
//
// What every thread runs is called in a region, and each takes its piece of the kernels in there.

// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<64xf32>, %[[NT:.*]]: i32)
// CHECK:         scf.if
// CHECK:           %[[ZERO:.*]] = arith.constant 0 : index
// CHECK:           %[[ONE:.*]] = arith.constant 1 : index
// CHECK:           func.call @main_team(%[[X]], %[[ZERO]], %[[ONE]])
// CHECK:         } else {
// CHECK:           omp.parallel num_threads(%[[NT]] : i32) {
// CHECK:             %[[T:.*]] = arith.index_castui
// CHECK:             %[[N:.*]] = arith.index_castui
// CHECK:             func.call @main_team(%[[X]], %[[T]], %[[N]])
// CHECK-LABEL: func.func private @main_team
// CHECK-SAME:  (%[[X:.*]]: memref<64xf32>, %[[T:.*]]: index, %[[N:.*]]: index)
// CHECK:         call @k_piece(%{{.*}}, %{{.*}}, %[[X]], %[[T]], %[[N]])
// CHECK:         call @serial(%[[X]])
// CHECK:         call @k_piece(%{{.*}}, %{{.*}}, %[[X]], %[[T]], %[[N]])
// CHECK-LABEL: func.func private @k_piece
// CHECK-NOT:     omp.parallel

func.func @main(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  func.call @main_team(%x, %c0, %c1) {polyblocks.each} : (memref<64xf32>, index, index) -> ()
  return
}
func.func private @main_team(%x: memref<64xf32>, %thread: index, %threads: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  func.call @k(%c0, %c64, %x) {polyblocks.team} : (index, index, memref<64xf32>) -> ()
  func.call @serial(%x) : (memref<64xf32>) -> ()
  func.call @k(%c0, %c64, %x) {polyblocks.team} : (index, index, memref<64xf32>) -> ()
  return
}
func.func private @k(index, index, memref<64xf32>)
func.func private @serial(memref<64xf32>)
