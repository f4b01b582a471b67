// PASSES: map-openmp
//
// A team call is shared among threads, unless it has one iteration; another call stays.

// CHECK:       func.func private @omp_get_thread_num() -> i32
// CHECK:       func.func private @omp_get_num_threads() -> i32
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: memref<64xf32>, %[[NT:.*]]: i32)
// CHECK:         call @k_team(%{{.*}}, %{{.*}}, %[[X]], %[[NT]])
// CHECK:         call @k_team(%{{.*}}, %{{.*}}, %[[X]], %[[NT]])
// CHECK:         call @k(%{{.*}}, %{{.*}}, %[[X]])
// CHECK:         call @serial(%[[X]])
// CHECK:         return
// CHECK:       func.func private @k_piece
// CHECK-SAME:  (%[[BEGIN:.*]]: index, %[[END:.*]]: index, %[[Y:.*]]: memref<64xf32>, %[[T:.*]]: index, %[[N:.*]]: index)
// CHECK:         %[[TRIPS:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK:         %[[P0:.*]] = arith.muli %[[T]], %[[TRIPS]]
// CHECK:         %[[Q0:.*]] = arith.divui %[[P0]], %[[N]]
// CHECK:         %[[FROM:.*]] = arith.addi %[[BEGIN]], %[[Q0]]
// CHECK:         %[[TO:.*]] = arith.addi %[[BEGIN]],
// CHECK:         call @k(%[[FROM]], %[[TO]], %[[Y]])
// CHECK:       func.func private @k_team
// CHECK-SAME:  (%[[BEGIN:.*]]: index, %[[END:.*]]: index, %[[Y:.*]]: memref<64xf32>, %[[N32:.*]]: i32)
// CHECK:         %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         %[[ALONE:.*]] = arith.cmpi sle, %[[N32]], %[[ONE]] : i32
// CHECK:         scf.if %[[ALONE]] {
// CHECK-NEXT:      func.call @k(%[[BEGIN]], %[[END]], %[[Y]])
// CHECK-NEXT:    } else {
// CHECK-NEXT:      omp.parallel num_threads(%[[N32]] : i32) {
// CHECK:             %[[T:.*]] = func.call @omp_get_thread_num()
// CHECK:             %[[TI:.*]] = arith.index_castui %[[T]]
// CHECK:             %[[N:.*]] = func.call @omp_get_num_threads()
// CHECK:             %[[NI:.*]] = arith.index_castui %[[N]]
// CHECK-NEXT:        func.call @k_piece(%[[BEGIN]], %[[END]], %[[Y]], %[[TI]], %[[NI]])
// CHECK:             omp.terminator
// CHECK-NOT:     omp.parallel

func.func @main(%x: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c1 = arith.constant 1 : index
  func.call @k(%c0, %c64, %x) {polyblocks.team} : (index, index, memref<64xf32>) -> ()
  func.call @k(%c0, %c64, %x) {polyblocks.team} : (index, index, memref<64xf32>) -> ()
  func.call @k(%c0, %c1, %x) {polyblocks.team} : (index, index, memref<64xf32>) -> ()
  func.call @serial(%x) : (memref<64xf32>) -> ()
  return
}
func.func private @k(index, index, memref<64xf32>)
func.func private @serial(memref<64xf32>)
