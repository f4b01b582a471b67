// PASSES: time-kernels
//
// The clock is read around each call of a kernel, wherever it stands, and around all of @main; other
// calls are left alone. Rows are named after the nests, in the order of the calls.

// CHECK:       module attributes {polyblocks.profile = {{\[}}["", ""], ["k", "first"], ["k", "second"], ["other", "other"], ["other", "other"]]}
// CHECK:       memref.global "private" @polyblocks_profile_times : memref<5x3xf64>
// CHECK:       func.func private @clock_gettime(i32, memref<2xi64>) -> i32
// CHECK-LABEL: func.func @main
// CHECK:         %[[NOW:.*]] = memref.alloca() : memref<2xi64>
// CHECK:         call @clock_gettime(%{{.*}}, %[[NOW]])
// CHECK:         %[[ALL:.*]] = arith.addi
// CHECK:         call @clock_gettime(%{{.*}}, %[[NOW]])
// CHECK:         %[[BEGIN:.*]] = arith.addi
// CHECK-NEXT:    call @k(
// CHECK:         call @clock_gettime(%{{.*}}, %[[NOW]])
// CHECK:         %[[END:.*]] = arith.addi
// CHECK-NEXT:    %[[PASSED:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK-NEXT:    %[[NS:.*]] = arith.sitofp %[[PASSED]]
// CHECK:         %[[T:.*]] = arith.mulf %[[NS]]
// CHECK:         %[[ROW:.*]] = arith.constant 1 : index
// CHECK:         arith.addf %{{.*}}, %[[T]]
// CHECK:         arith.minnumf %{{.*}}, %[[T]]
// CHECK:         affine.for
// CHECK:           func.call @clock_gettime
// CHECK:           func.call @k(
// CHECK:           func.call @clock_gettime
// CHECK:         call @clock_gettime
// CHECK:         call @other(
// CHECK:         call @clock_gettime
// CHECK-NOT:     clock_gettime
// CHECK:         call @helper()
// CHECK:         call @clock_gettime
// CHECK:         %[[INNER:.*]] = arith.addi
// CHECK-NEXT:    call @other(
// CHECK:         call @clock_gettime
// CHECK:         arith.subi %{{.*}}, %[[INNER]]
// CHECK:         call @clock_gettime
// CHECK:         %[[LAST:.*]] = arith.addi
// CHECK-NEXT:    arith.subi %[[LAST]], %[[ALL]]
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
  call @other(%b, %a) : (memref<4xf32>, memref<4xf32>) -> ()
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
