// PASSES: merge-kernels
//
// The second kernel is the first one under another name; the third one differs.

// CHECK-LABEL: func.func @main
// CHECK:         call @k(%{{.*}}, %{{.*}})
// CHECK:         call @k(%{{.*}}, %{{.*}})
// CHECK:         call @other(
// CHECK:       func.func private @k(
// CHECK-SAME:    polyblocks.calls = 2 : i64
// CHECK-SAME:    polyblocks.estimates = [{flops = 4 : i64}, {flops = 8 : i64}]
// CHECK-SAME:    polyblocks.nests = ["k", "k_1"]
// CHECK-SAME:    polyblocks.sources = ["a x.py:1", "b x.py:2"]
// CHECK-NOT:   @k_1
// CHECK:       func.func private @other(
// CHECK-NOT:     polyblocks.calls
func.func @main(%a: memref<4xf32>, %b: memref<4xf32>) {
  call @k(%a, %b) : (memref<4xf32>, memref<4xf32>) -> ()
  call @k_1(%b, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  call @other(%b, %a) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
func.func private @k(%x: memref<4xf32>, %y: memref<4xf32>) attributes {polyblocks.trips = 1 : i64, polyblocks.sources = ["a x.py:1"], polyblocks.nests = ["k"], polyblocks.estimate = {flops = 4 : i64}} {
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}
func.func private @k_1(%x: memref<4xf32>, %y: memref<4xf32>) attributes {polyblocks.trips = 1 : i64, polyblocks.sources = ["b x.py:2"], polyblocks.nests = ["k_1"], polyblocks.estimate = {flops = 8 : i64}} {
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}
func.func private @other(%x: memref<4xf32>, %y: memref<4xf32>) attributes {polyblocks.trips = 1 : i64} {
  memref.copy %y, %x : memref<4xf32> to memref<4xf32>
  return
}
