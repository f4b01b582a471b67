// PASSES: time-kernels
//
// The clock is read around each call of a kernel, wherever it stands, and around all of @main; other
// calls are left alone. Rows are named after the nests, in the order of the calls.

// CHECK:       module attributes {polyblocks.profile = {{\[}}["", ""], ["k", "first"], ["k", "second"], ["other", "other"]]}
// CHECK:       memref.global "private" @polyblocks_profile_times : memref<4x3xf64>
// CHECK:       func.func private @omp_get_wtime() -> f64
// CHECK-LABEL: func.func @main
// CHECK:         %[[ALL:.*]] = call @omp_get_wtime()
// CHECK:         %[[BEGIN:.*]] = call @omp_get_wtime()
// CHECK:         call @k(
// CHECK-NEXT:    %[[END:.*]] = call @omp_get_wtime()
// CHECK-NEXT:    %[[T:.*]] = arith.subf %[[END]], %[[BEGIN]]
// CHECK:         %[[ROW:.*]] = arith.constant 1 : index
// CHECK:         arith.addf %{{.*}}, %[[T]]
// CHECK:         arith.minnumf %{{.*}}, %[[T]]
// CHECK:         affine.for
// CHECK:           call @omp_get_wtime()
// CHECK-NEXT:      call @k(
// CHECK-NEXT:      call @omp_get_wtime()
// CHECK:         call @omp_get_wtime()
// CHECK-NEXT:    call @other(
// CHECK-NEXT:    call @omp_get_wtime()
// CHECK-NOT:     omp_get_wtime
// CHECK:         call @helper()
// CHECK:         %[[LAST:.*]] = call @omp_get_wtime()
// CHECK-NEXT:    arith.subf %[[LAST]], %[[ALL]]
// CHECK:         return
// CHECK:       func.func @polyblocks_profile() -> index
// CHECK-NEXT:    %[[TABLE:.*]] = memref.get_global @polyblocks_profile_times
// CHECK-NEXT:    %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %[[TABLE]]
// CHECK-NEXT:    return %[[ADDRESS]]
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
  call @k(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  affine.for %i = 0 to 2 {
    func.call @k(%b, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  call @other(%b, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  call @helper() : () -> ()
  return
}
func.func private @helper()
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {polyblocks.trips = 1 : i64, polyblocks.nests = ["first", "second"]} {
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}
func.func private @other(%x: memref<4xf32>, %y: memref<4xf32>) attributes {polyblocks.trips = 1 : i64} {
  memref.copy %y, %x : memref<4xf32> to memref<4xf32>
  return
}
